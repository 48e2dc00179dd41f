#!/usr/bin/env bash
# Runs the tests of phpbridge, then those of e2e, with every zygote and its workers
# under valgrind, which sees what the sanitizers of test-c.sh do not: memory that is
# read before it was written, also by PHP itself.
#
#   build/test-valgrind.sh [PATTERN of tests]
#
# phpbridge runs without PHP's own allocator, so that every allocation of a request
# is watched, and without conf.d, as there; e2e runs with both, as users have it.
# All of it takes about an hour, with PHP twenty times as slow as usual.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v valgrind >/dev/null; then
	echo "test-valgrind: install valgrind" >&2
	exit 1
fi

# Not under valgrind: it keeps limits of processes to itself (OtherLimits), and what
# is told by absolute times, sizes of processes or shares of them means nothing.
skip='OtherLimits|KilledWorkersCostOnly|FlatMemory|Starve|Share|Soak|Memory|Browser|WordPress|PHPMyAdmin|Symfony'

logs=$(mktemp -d)
chmod 1777 "$logs" # pools with users of their own write there, too
trap 'rm -rf "$logs"' EXIT
under="valgrind --quiet --vgdb=no --num-callers=30 --log-file=$logs/%p --suppressions=$PWD/build/valgrind.supp"
status=0

go test -c -o bin/phpbridge.test ./phpbridge
(cd phpbridge && USE_ZEND_ALLOC=0 PHP_INI_SCAN_DIR='' ../bin/phpbridge.test -test.timeout 60m \
	-test.run "${1:-^Test}" -test.skip "$skip" -under "$under") || status=$?
go test -timeout 120m ./e2e -run "${1:-^Test}" -skip "$skip" -args -under "$under" || status=$?

# Beside findings there is what valgrind cannot read of Go's debugging information.
if cat "$logs"/* | grep '^==[0-9]*==' >"$logs/findings"; then
	cat "$logs/findings"
	exit 1
fi
echo "valgrind found nothing in $(find "$logs" -type f -name '[0-9]*' | wc -l) processes"
exit $status
