# The first part of server.sh and pair.sh: PostgreSQL's programs, a directory that
# goes with the script, and functions that make and start servers in it.
#
# POSIX sh, run as `sh -c "$(cat programs.sh server.sh)"` by an unprivileged user:
# the files themselves may lie where that user cannot read.
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

# In memory where 4 GB of it are free for files: tests make and drop hundreds of databases,
# each of a thousand files. Short, because a Unix socket's path may have 107 bytes only.
base=/tmp
if [ "$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')" -gt 4000000 ] 2>/dev/null && [ -w /dev/shm ]; then
	base=/dev/shm
fi
dir=$(mktemp -d "$base/muster-pg.XXXXXX")
# shellcheck disable=SC2317 # reached by the trap
finish() {
	trap '' HUP TERM # runuser sends a second one
	for data in "$dir"/data*; do
		"$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || :
	done
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP TERM
trap '' INT # an interrupt reaches the tests as well; their end is ours

random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
password=$(random 16)
echo "$password" >"$dir/password"

init_with() {
	rm -rf "$dir/data"
	"$bin/initdb" -D "$dir/data" -U muster --pwfile="$dir/password" -A scram-sha-256 \
		-E UTF8 --locale=C --no-sync "$@" >"$dir/init.log" 2>&1
}

# init makes the server's files in $dir/data. It orders as a customer's server
# does, not as bytes: a query that depends on the server's collation is then
# caught here. Servers before 15 have C only.
init() {
	init_with --locale-provider=icu --icu-locale=en-US || init_with || {
		cat "$dir/init.log" >&2
		exit 1
	}
	cat >>"$dir/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
max_connections = 300
fsync = off
full_page_writes = off
max_wal_size = 256MB
CONF
}

# start NAME PORT starts the server in $dir/NAME.
start() {
	"$bin/pg_ctl" -D "$dir/$1" -l "$dir/$1.log" -o "-p $2" -w -t 60 start >/dev/null 2>&1
}

# start_somewhere NAME starts it on a port that is free, below the range of
# outgoing ports, and sets port.
start_somewhere() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		port=$((20000 + 0x$(random 2) % 12000))
		if start "$1" "$port"; then
			return
		fi
	done
	cat "$dir/$1.log" >&2
	exit 1
}
