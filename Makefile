# make run     set up this Debian 12, build, serve the sample chat on port 8080
# make test    every test
# make help    the other targets

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# sudo forgets the PATH that Go was found in. Go from Debian, unlike Go from
# go.dev, has to be told to fetch the version that go.mod names.
export PATH := $(PATH):/usr/local/go/bin:/usr/local/sbin:/usr/sbin:/sbin
export GOTOOLCHAIN ?= auto

FUZZTIME ?= 10s
BENCHFLAGS ?=

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

build: setup-build ## build bin/ephpm
	go build -o bin/ephpm ./cmd/ephpm

run: setup-run ## build and serve the sample chat on port 8080
	@go build -o bin/ephpm ./cmd/ephpm
	@build/run-chat.sh

test: setup-test ## every test, again with the race detector, the C code under sanitizers
	go vet ./...
	go test -timeout 30m ./... # a slow machine may take more than the usual ten minutes
	go test -race -timeout 30m ./...
	build/test-c.sh

asan: setup-test ## every server of e2e with the C code under sanitizers
	build/test-c.sh e2e

valgrind: setup-test ## PHP and our C code under valgrind in nearly every test, about an hour
	build/test-valgrind.sh

lint: setup-lint ## formatting, vet, staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not gofmt-ed:" $$unformatted; exit 1; fi
	go vet ./...
	go tool staticcheck ./...
	@for f in build/*.sh .ci/run; do bash -n $$f; done
	clang-format --dry-run -Werror phpbridge/*.[ch]

fuzz: setup-build ## every fuzz target for FUZZTIME (10s) each
	@build/fuzz.sh $(FUZZTIME)

soak: setup-test ## a thousand workers killed under load, twice: with pages, with sockets open, ten thousand half-open clients, storms of sockets
	go test ./e2e -run TestHalfOpenAndSlowClientsDoNotStopPages -count=1 -v -args -half-open 10000
	go test ./e2e -run TestClientsThatLeaveHalfWayLeaveNothing -count=1 -v -args -ws-leavers 100000
	go test ./e2e -run TestCrowdThatIsDroppedAtOnce -count=1 -v -args -ws-crowd 15000
	go test ./e2e -run TestAbuseCostsNobodyElse -count=1 -v -args -ws-abusers 1000
	go test ./phpbridge -run TestKilledWorkersCostOnlyTheirRequests -count=1 -v -args -kills 1000
	go test ./e2e -run TestKilledWorkersCloseNoSocket -count=1 -v -timeout 30m -args -kills 1000

bench: setup-bench build ## against nginx + php-fpm, nginx for files, and Redis; flags in BENCHFLAGS
	go run ./bench $(BENCHFLAGS)
	go run ./bench -files $(BENCHFLAGS)
	go run ./bench -redis $(BENCHFLAGS)
	go run ./bench -store $(BENCHFLAGS)

bench-tls: setup-bench build ## handshakes, HTTP/2 and idle connections beside nginx's; flags in BENCHFLAGS
	go run ./bench -tls $(BENCHFLAGS)

bench-http3: setup-bench build ## HTTP/3, beside a bare quic-go handler; flags in BENCHFLAGS
	go run ./bench -http3 $(BENCHFLAGS)

bench-ws: setup-bench build ## what WebSockets cost, beside a bare Go server; flags in BENCHFLAGS
	go run ./bench -sockets $(BENCHFLAGS)

clean: ## remove what build made
	rm -rf bin

setup-%:
	@build/setup.sh $*

.PHONY: help build run test lint asan valgrind fuzz soak bench bench-http3 bench-tls bench-ws clean
