#!/usr/bin/env bash
# Runs tests of phpbridge with the zygote and the workers under valgrind, which sees
# what the sanitizers of test-c.sh do not: memory that is read before it was written,
# also by PHP itself. PHP's own allocator is switched off, so that every allocation
# of a request is watched; conf.d stays out as there. Takes some minutes.
#
#   build/test-valgrind.sh [PATTERN of tests]
#
# By default those that exercise the C code without depending on speed. Left out in
# any case: what kills workers by the hundred, or looks at one from outside.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
	echo "test-valgrind: install valgrind" >&2
	exit 1
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export USE_ZEND_ALLOC=0
export PHP_INI_SCAN_DIR=

go test -c -o bin/phpbridge.test ./phpbridge
cd phpbridge
status=0
../bin/phpbridge.test -test.timeout 30m -test.run "${1:-^Test(Serve|Finish|EarlyHints|Headers|Log|HostCall|Workers|Settings|Environment|PostMax|Working|Result|Env|Soft)}" \
	-test.skip 'Slow|Killed|Stop|Spinner|Zygote|Successor|TimeLimit|CommandLine|Remote|PHPBinary' \
	-under "valgrind --quiet --num-callers=30 --log-file=$logs/%p --suppressions=$PWD/../build/valgrind.supp" || status=$?
# Beside findings there is what valgrind cannot read of Go's debugging information.
if cat "$logs"/* | grep '^==[0-9]*==' >"$logs/findings"; then
	cat "$logs/findings"
	exit 1
fi
echo "valgrind found nothing in $(find "$logs" -type f -name '[0-9]*' | wc -l) processes"
exit $status
