#!/usr/bin/env bash
# fuzz.sh [FUZZTIME]: runs every fuzz target of the module for FUZZTIME each
# (5m by default). FUZZ=pattern picks targets by name. Goes on after a finding
# and fails at the end; findings lie in the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

failed=()
while IFS=: read -r file target; do
	say "$target in ${file%/*} for ${1:-5m}"
	go test "./${file%/*}" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-5m}" </dev/null || failed+=("$target in ${file%/*}")
done < <(git grep -E --untracked '^func Fuzz[A-Za-z0-9_]*[(]' -- '*_test.go' |
	sed -E 's/^([^:]*):func (Fuzz[A-Za-z0-9_]*).*/\1:\2/' | grep -E ":.*${FUZZ-}" | sort)

if [ ${#failed[@]} -gt 0 ]; then
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
fi
