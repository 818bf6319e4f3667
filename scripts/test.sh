#!/usr/bin/env bash
# test.sh [GO TEST ARGUMENTS]: the whole test suite, as in the README. Installs
# what is missing and possible, starts a PostgreSQL of its own, vets, and tests
# with the race detector, except where whole programs run. With arguments, it runs
# go test -race with them.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

export CGO_ENABLED=1 # the race detector needs it
export GORACE=atexit_sleep_ms=0 # else each program that a test starts sleeps a second at its end
export GOGC=300 # a tenth of the processor's time less, for three times the memory
test_packages
# What runs whole programs, browsers and fleets, the whole contract, every statement on both engines, every page,
# or thousands of cases of one function, runs without the race detector, under which it takes most of the time; all
# that it runs is watched in the other packages' tests, and the contract, the database and the portal in those of
# `make prove`. What takes longest is first, so that the others run beside it. These tests wait more than
# they calculate, so that four run at a time.
programs=(./test/e2e ./test/browser ./internal/database ./test/contract ./internal/surface/portal ./internal/fleetsim
	./cmd/muster ./internal/proposal ./internal/service/drill ./docs ./internal/signature ./internal/agent/logfile)
# What is printed is kept as well, for the end of a log of which one sees the end first.
all=$(mktemp)
trap 'rm -f "$all"' EXIT
# tested runs tests with a PostgreSQL, and notes that some failed.
failed=0
tested() {
	scripts/with-postgres.sh go test "$@" 2>&1 | tee -a "$all" || failed=1
}

# The app's tests run beside those of the programs, after what both need was fetched.
app= log=
if [ $# -eq 0 ]; then
	mapfile -t others < <(go list ./... | grep -vxFf <(go list "${programs[@]}"))
	set -- "${others[@]}"
	android/artifacts.sh build lint test sdk >/dev/null 2>&1 || : # app-test.sh says what is missing
	log=$(mktemp)
	scripts/app-test.sh >"$log" 2>&1 &
	app=$!
fi

# Vetting with -race as well shares one compilation of everything with the tests.
say "go vet"
go vet "${race[@]}" ./...
if [ -n "$app" ]; then
	say "go test ${programs[*]}"
	tested -vet=off -parallel 4 -timeout 30m "${programs[@]}"
	say "the Android app"
	wait "$app" || failed=1
	tee -a "$all" <"$log" >&2
	rm -f "$log"
	say "go test -race, all others"
else
	say "go test -race $*"
fi
tested "${race[@]}" -vet=off -timeout 30m "$@"
if [ $failed = 1 ]; then
	say "what failed"
	grep -aE -A 3 '^ *--- FAIL|^FAIL|^panic:|^[0-9]+\) |^SKIPPED|^cannot ' "$all" | tail -n 40 >&2
fi
exit $failed
