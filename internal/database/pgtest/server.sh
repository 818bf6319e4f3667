# Runs a private, throw-away PostgreSQL server for tests.
#
# Prints its address on standard output, closes it, and serves until its
# standard input ends. So the server goes when the process that holds the other
# end goes, however that happens; its files go with it.
#
# POSIX sh, run as `sh -c "$(cat server.sh)"` by an unprivileged user: the file
# itself may lie where that user cannot read.
#
# Exit status 3: there are no PostgreSQL programs on this machine.
set -eu
cd /
umask 077
export LC_ALL=C

find_bin() {
	# shellcheck disable=SC2012 # Debian's names have no odd characters
	for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -t / -k 5 -rn) \
		$(command -v pg_ctl | xargs -r dirname) /usr/local/pgsql/bin; do
		if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ]; then
			echo "$dir"
			return
		fi
	done
}

bin=$(find_bin)
if [ -z "$bin" ]; then
	echo "no PostgreSQL programs in /usr/lib/postgresql/*/bin or PATH" >&2
	exit 3
fi

# Short, because a Unix socket's path may have 107 bytes only.
dir=$(mktemp -d /tmp/muster-pg.XXXXXX)
# shellcheck disable=SC2317 # reached by the trap
finish() {
	trap '' HUP TERM # runuser sends a second one
	"$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || :
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP TERM
trap '' INT # an interrupt reaches the tests as well; their end is ours

random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
password=$(random 16)
echo "$password" >"$dir/password"

init() {
	rm -rf "$dir/data"
	"$bin/initdb" -D "$dir/data" -U muster --pwfile="$dir/password" -A scram-sha-256 \
		-E UTF8 --locale=C --no-sync "$@" >"$dir/init.log" 2>&1
}
# Order as a customer's server has it, not as bytes: a query that depends on the
# server's collation is then caught here. Servers before 15 have C only.
init --locale-provider=icu --icu-locale=en-US || init || {
	cat "$dir/init.log" >&2
	exit 1
}

cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
max_connections = 300
fsync = off
full_page_writes = off
synchronous_commit = off
CONF

for _ in 1 2 3 4 5 6 7 8 9 10; do
	port=$((20000 + 0x$(random 2) % 12000)) # below the range of outgoing ports
	if "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -o "-p $port" -w -t 60 start >/dev/null 2>&1; then
		echo "postgres://muster:$password@127.0.0.1:$port/postgres?sslmode=disable"
		exec >/dev/null 2>&1
		# Until the caller closes our standard input or ends. Not cat: the shell
		# would see to a signal only after it.
		while read -r _; do :; done
		exit 0
	fi
done
cat "$dir/server.log" >&2
exit 1
