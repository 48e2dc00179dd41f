#!/usr/bin/env bash
# Runs the tests of phpbridge with its C code under AddressSanitizer and
# UndefinedBehaviorSanitizer. PHP's own allocator is switched off, so that every
# request allocation is watched too. conf.d stays out: PHP loads extensions in a
# way (RTLD_DEEPBIND) that the sanitizers refuse.
set -euo pipefail
cd "$(dirname "$0")/.."

export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0:abort_on_error=1:handle_segv=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export USE_ZEND_ALLOC=0
export PHP_INI_SCAN_DIR=
export CGO_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
export CGO_LDFLAGS="-fsanitize=address,undefined"

# Not `go test`: the preloaded library is meant for the test program alone.
go test -c -o bin/phpbridge.asan.test ./phpbridge
cd phpbridge
LD_PRELOAD=$(gcc -print-file-name=libasan.so) ../bin/phpbridge.asan.test -test.timeout 5m "$@"
