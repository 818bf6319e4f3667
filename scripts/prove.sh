#!/usr/bin/env bash
# prove.sh: the long runs of what `make test` shows in a short one, and the proofs of a release. They take more
# than half an hour, and their results are in docs/performance.md or the release notes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

test_packages
prove() {
	say "go test $*"
	scripts/with-postgres.sh go test -count=1 -v -timeout 60m "$@"
}
# busily runs a command beside a loop that keeps each core busy.
busily() (
	for _ in $(seq "$(nproc)"); do
		while :; do :; done &
	done
	trap 'kill $(jobs -p)' EXIT
	"$@"
)
# Under load, tests that depend on time fail: those of the database, the contract and the programs twenty times in a row.
say "twenty times under load"
busily scripts/with-postgres.sh go test -count=20 -timeout 24h ./internal/database/... ./test/contract ./test/e2e
# The whole contract, the database and the portal under the race detector.
prove -race ./test/contract ./internal/database ./internal/surface/portal
# Each version of the database is migrated on both engines, and the rules predict more random calls.
prove ./internal/database -run TestMigrate_EveryOlderVersion -every-migration
prove ./test/contract -run TestRulebook_ -plays 50
# The network and the processes fail for ten minutes; the standby takes over three times.
prove ./test/e2e -run TestFaults_ -faults 10m
prove ./test/e2e -run TestFailover_ -failovers 3
# Two thousand agents whose answers are lost and come twice, and who die between any two steps.
prove ./internal/fleetsim -run TestFleet_UnderFaults -faulty-agents 2000
# Ten thousand connected agents at 80 % of the capacity for ten minutes: times, memory and goroutines do not grow.
prove ./test/e2e -run TestCapacity_HoldsLoad -capacity-agents 10000 -capacity-time 10m -capacity-chart "$PWD/bin/capacity.svg"
# Twenty thousand with TLS in the process; skipped where the limit of open files is too low (ulimit -n 32768).
prove ./test/e2e -run TestCapacity_TLS -capacity-agents 20000 -capacity-time 2m
# A million enrolled agents on one PostgreSQL behind two replicas for ten minutes: times, memory, dead rows and WAL level off.
MUSTER_TEST_POSTGRES_CONF=$'shared_buffers = 4GB\nmax_wal_size = 4GB' \
	prove ./test/e2e -run TestMillion_ -million-agents 1000000 -million-time 10m -million-checkins 1500 \
		-million-commands 20 -million-chart "$PWD/bin/million.svg"
# Ten thousand devices that fall silent are one mail.
prove ./internal/service/mail -run TestSender_ManySilent -silent 10000
# Receivers of webhooks and the service fail for four minutes.
scripts/conformance.sh -v -run TestWebhooks_ -hook-faults 4m
# Ten thousand events wait for a receiver that is down.
prove ./internal/database -run TestWebhook_DeadReceiver -waiting 10000
# A hundred devices for half a year in virtual time: what is kept for 30 days levels off.
prove ./internal/database -run TestGrowth_ -growth-months 6 -growth-devices 100
# The same with the whole service on both engines: agents, proposals, webhooks, mail, people, logs and jobs.
prove ./test/e2e -run TestGrowth_ -growth-months 6 -growth-devices 100 -growth-step 6
# The program of the commit before is replaced by this one, three times, behind each proxy.
# BEFORE names another commit, where the schema of this one locks out the program before: such an
# upgrade cannot roll (docs/operating.md).
programs=$(mktemp -d)
trap 'git worktree remove --force "$programs/before"; rm -rf "$programs"' EXIT
git worktree add -q --detach "$programs/before" "${BEFORE:-HEAD~1}"
(cd "$programs/before" && go build -o "$programs/muster-before" ./cmd/muster)
go build -o "$programs/muster" ./cmd/muster
prove ./test/e2e -run TestProxies_RollingUpgrade -count=3 -upgrade-from "$programs/muster-before" -upgrade-to "$programs/muster"
# The packages are installed by the documentation, upgraded from those of the commit before
# under load, restored, and removed; the image and the compose file run as processes.
for program in mmdebstrap caddy minisign rpm; do
	command -v $program >/dev/null || debian_install $program
done
(
	export MUSTER_RELEASE_APP=no MUSTER_RELEASE_TARGETS=linux/amd64
	DIST=$programs/new scripts/release.sh
	cd "$programs/before" && DIST=$programs/old scripts/release.sh
)
as_root scripts/prove-package.sh "$programs/new" "$programs/old"
as_root scripts/prove-compose.sh "$programs"/new/*-image.tar
# The whole release is made twice, byte for byte the same.
scripts/prove-release.sh
