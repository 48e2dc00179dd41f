#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-10s}

found=
while IFS=: read -r file target; do
	found=1
	echo "== $target ($(dirname "$file"))"
	go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" </dev/null
done < <(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . |
	sed -E 's|^\./||; s/:func /:/' | sort)
[ -n "$found" ] || { echo "fuzz: no fuzz target found" >&2; exit 1; }
