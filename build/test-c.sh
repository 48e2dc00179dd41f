#!/usr/bin/env bash
# Runs tests with the C code under AddressSanitizer and UndefinedBehaviorSanitizer.
# PHP's own allocator is switched off, so that every request allocation is watched
# too. What PHP itself reads and writes is not looked at, see test-valgrind.sh.
#
#   build/test-c.sh [bridge | e2e [flags of the tests, such as -test.run PATTERN]]
#
# The bridge by default; the servers of e2e are built so as well. Left out there is
# what looks at sizes of processes or at memory_limit, which is of PHP's own allocator
# (Memory, LimitsOfPHP), shares of time (Starve), a hundred large inputs, which take
# too long (SizeOfALargeInput), and what is no test of C: browsers, the applications.
set -euo pipefail
cd "$(dirname "$0")/.."

package=phpbridge
skip='^$'
if [ "${1:-}" = e2e ]; then
	package=e2e
	skip='Memory|LimitsOfPHP|Starve|SizeOfALargeInput|Browser|WordPress|PHPMyAdmin|Symfony'
fi

logs=$(mktemp -d)
chmod 1777 "$logs" # pools with users of their own write there, too
trap 'rm -rf "$logs"' EXIT
export ASAN_OPTIONS=log_path=$logs/address UBSAN_OPTIONS=log_path=$logs/behaviour
export USE_ZEND_ALLOC=0
export CGO_CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
export CGO_LDFLAGS="-fsanitize=address,undefined"

go test -c -o bin/$package.asan.test ./$package # go test alone leaves the symbols out
status=0
(cd $package && ../bin/$package.asan.test -test.timeout 60m -test.skip "$skip" "${@:2}") || status=$?
# A test that expects a worker to die does not see of what.
if cat "$logs"/* 2>/dev/null; then
	exit 1
fi
exit $status
