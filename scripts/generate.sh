#!/usr/bin/env bash
# generate.sh [-check]: runs the code generators, whose output is committed.
# With -check, fails when that changed a file.
set -euo pipefail
cd "$(dirname "$0")/.."

if git ls-files --cached --others --exclude-standard -- '*.templ' | grep -q .; then
	go -C tools build -o ../bin/ github.com/a-h/templ/cmd/templ
	bin/templ generate -log-level warn
fi
go generate ./...
if [ "${1-}" = -check ] && ! git diff --exit-code --stat; then
	echo "generated files are out of date: run make generate and commit" >&2
	exit 1
fi
