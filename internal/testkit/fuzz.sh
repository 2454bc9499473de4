#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time, one after another; or the
# one that is named.
# usage: fuzz.sh DURATION [TARGET]
set -euo pipefail
cd "$(dirname "$0")/../.."
duration=${1:?usage: fuzz.sh DURATION [TARGET]}
only=${2:-Fuzz[A-Za-z0-9_]*}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	{ grep -hoE "^func $only\(" "$dir"/*_test.go || true; } | sed 's/^func //; s/($//' | sort -u | while read -r target; do
		echo "== $dir $target"
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" </dev/null
	done
done
