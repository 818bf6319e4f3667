#!/usr/bin/env bash
# test.sh [GO TEST ARGUMENTS]: the whole test suite, as in the README. Installs
# what is missing and possible, starts a PostgreSQL of its own, vets, and tests
# with the race detector. With arguments, they replace "./...".
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

export CGO_ENABLED=1 # the race detector needs it
test_packages
if [ $# -eq 0 ]; then set -- ./...; fi

# Vetting with -race as well shares one compilation of everything with the tests.
say "go vet"
go vet "${race[@]}" ./...
say "go test -race $*"
scripts/with-postgres.sh go test "${race[@]}" -vet=off -timeout 20m "$@"
