#!/usr/bin/env bash
# bench-peers.sh [FLAG...]: builds NanoMDM and PocketBase from their Go modules in a
# temporary directory, installs Debian's mosquitto, and measures Muster beside them in one
# sitting, which writes the table of docs/performance.md. `-quick` only shows that it works, and
# prints the table.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

nanomdm=github.com/micromdm/nanomdm@v0.9.0
pocketbase=github.com/pocketbase/pocketbase@v0.39.0 # the newest that Go 1.26 compiles

peers=$(mktemp -d)
trap 'rm -rf "$peers"' EXIT
say "building the peers"
GOBIN=$peers go install "${nanomdm/@//cmd/nanomdm@}"
GOBIN=$peers go install "${pocketbase/@//examples/base@}"
cp "$(go mod download -json "$nanomdm" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')/storage/pgsql/schema.sql" "$peers/nanomdm.sql"
command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ] || debian_install mosquitto

run=(-agents 5000 -assets 200000 -idle 2000 -rounds 5 -round 3s -table "$PWD/docs/performance.md")
if [ "${1-}" = -quick ]; then
	run=()
	shift
fi
say "measuring"
scripts/with-postgres.sh go test ./test/e2e -count=1 -v -timeout 90m -run TestPeers -peers "$peers" "${run[@]}" "$@"
