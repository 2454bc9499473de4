#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time, one after another.
# usage: fuzz.sh DURATION
set -euo pipefail
cd "$(dirname "$0")/../.."
duration=${1:?usage: fuzz.sh DURATION}
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u | while read -r target; do
		echo "== $dir $target"
		go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" </dev/null
	done
done
