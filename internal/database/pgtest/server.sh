# Runs a private, throw-away PostgreSQL server for tests, after programs.sh.
#
# Prints its address on standard output, closes it, and serves until its
# standard input ends. So the server goes when the process that holds the other
# end goes, however that happens; its files go with it.
init
echo "synchronous_commit = off" >>"$dir/data/postgresql.conf"
# Lines of postgresql.conf for a long run: the last one of a name counts.
echo "${MUSTER_TEST_POSTGRES_CONF-}" >>"$dir/data/postgresql.conf"
start_somewhere data
echo "postgres://muster:$password@127.0.0.1:$port/postgres?sslmode=disable"
exec >/dev/null 2>&1
# Until the caller closes our standard input or ends. Not cat: the shell
# would see to a signal only after it.
while read -r _; do :; done
