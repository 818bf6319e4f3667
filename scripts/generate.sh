#!/usr/bin/env bash
# generate.sh [-check]: runs the code generators and the build of the portal's
# stylesheet, icons and scripts, whose output is committed.
# With -check, fails when that changed a file.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

if git ls-files --cached --others --exclude-standard -- '*.templ' | grep -q .; then
	go -C tools build -o ../bin/ github.com/a-h/templ/cmd/templ
	bin/templ generate -log-level warn
fi
go generate ./...
if web_packages; then
	say "web: stylesheet, icons, scripts, font"
	bash web/build.sh >/dev/null
else
	echo "web/ was not built, so that its output was not compared: node or npm is missing" >&2
fi
if [ "${1-}" = -check ] && ! git diff --exit-code --stat; then
	echo "generated files are out of date: run make generate and commit" >&2
	exit 1
fi
