#!/usr/bin/env bash
# with-postgres.sh COMMAND...: runs a command with MUSTER_TEST_POSTGRES set to a
# private PostgreSQL server, which ends and is removed with this script, however
# it ends. A server that the variable already names is left alone.
# MUSTER_TEST_POSTGRES_CONF has lines for the configuration of the private one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

if [ -n "${MUSTER_TEST_POSTGRES-}" ]; then
	exec "$@"
fi

# PostgreSQL refuses to run as root.
as_user=(sh -c)
if [ "$(id -u)" -eq 0 ]; then
	user=nobody
	if id postgres >/dev/null 2>&1; then user=postgres; fi
	if command -v runuser >/dev/null; then
		as_user=(runuser -u "$user" -- sh -c)
	else
		as_user=(su -s /bin/sh "$user" -c)
	fi
fi

# The server serves until its standard input ends, and we hold the other end.
say "starting a private PostgreSQL"
coproc server { exec "${as_user[@]}" "$(cat internal/database/pgtest/programs.sh internal/database/pgtest/server.sh)"; }
lifeline=${server[1]} pid=$!
if ! IFS= read -r url <&"${server[0]}"; then
	wait "$pid" || :
	if [ "${CI-}" = true ]; then
		echo "cannot start PostgreSQL, and CI=true: tests may not be skipped" >&2
		exit 1
	fi
	echo "no PostgreSQL: the tests that need it will be skipped" >&2
	exec "$@"
fi
stop() {
	exec {lifeline}>&-
	wait "$pid" || :
}
trap stop EXIT
export MUSTER_TEST_POSTGRES=$url
"$@"
