#!/usr/bin/env bash
# test.sh [GO TEST ARGUMENTS]: the whole test suite, as in the README. Installs
# what is missing and possible, starts a PostgreSQL of its own, vets, and tests
# with the race detector. With arguments, they replace "./...".
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

export CGO_ENABLED=1 # the race detector needs it
export GORACE=atexit_sleep_ms=0 # else each program that a test starts sleeps a second at its end
test_packages
# The app's tests run on one core while Go compiles.
app= log=
if [ $# -eq 0 ]; then
	# The packages that take longest first, so that the others run beside them.
	set -- ./test/e2e ./test/browser ./test/contract ./cmd/muster ./internal/database ./...
	log=$(mktemp)
	scripts/app-test.sh >"$log" 2>&1 &
	app=$!
fi

# Vetting with -race as well shares one compilation of everything with the tests.
say "go vet"
go vet "${race[@]}" ./...
if [ -n "$app" ]; then
	say "the Android app"
	wait "$app" || { cat "$log" >&2; exit 1; }
	cat "$log" >&2
	rm -f "$log"
fi
say "go test -race $*"
scripts/with-postgres.sh go test "${race[@]}" -vet=off -timeout 30m "$@"
