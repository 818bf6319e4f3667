#!/usr/bin/env bash
# golden.sh: writes the golden files again. Tests that compare with one have
# Golden in their name, and their package has a boolean flag -update.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(git grep -l --untracked -F 'flag.Bool("update"' -- '*_test.go' | sed 's|^|./|; s|/[^/]*$||' | sort -u)
if [ ${#packages[@]} -eq 0 ]; then
	echo "no package has golden files" >&2
	exit 0
fi
go test "${packages[@]}" -run Golden -update
git status --short
