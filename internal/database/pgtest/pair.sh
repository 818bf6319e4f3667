# Runs a primary and its synchronous standby for tests, after programs.sh.
#
# Prints the address of both, then does what each line of standard input says,
# and answers each with a line. Both go when standard input ends.
#
#	stop     the primary dies
#	promote  the standby takes over; it commits alone, as Patroni has it too
#	fence    the former primary dies, which was only cut off
#	rebuild  the former primary becomes the standby, from scratch; the answer
#	         comes when commits wait for it
export PGPASSWORD="$password" PGUSER=muster PGHOST=127.0.0.1 PGDATABASE=postgres

# ask PORT QUERY
ask() { "$bin/psql" -XAtqc "$2" -p "$1"; }

follow() { # NAME PORT: a standby of the primary
	rm -rf "${dir:?}/$1"
	ask "$primary_port" "ALTER SYSTEM RESET synchronous_standby_names"
	"$bin/pg_basebackup" -d "port=$primary_port application_name=standby" -D "$dir/$1" -R -c fast --no-sync
	if [ -n "${2-}" ]; then
		start "$1" "$2"
	else
		start_somewhere "$1"
	fi
	ask "$primary_port" "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
	ask "$primary_port" "SELECT pg_reload_conf()" >/dev/null
	for _ in $(seq 600); do
		streaming="SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
		if [ "$(ask "$primary_port" "$streaming")" = 1 ]; then
			return
		fi
		sleep 0.1
	done
	return 1
}

init
start_somewhere data
primary=data primary_port=$port
follow data2 ""
standby=data2 standby_port=$port
echo "postgres://muster:$password@127.0.0.1:$primary_port,127.0.0.1:$standby_port/postgres?sslmode=disable&target_session_attrs=read-write"

while read -r what; do
	case $what in
	stop) "$bin/pg_ctl" -D "$dir/$primary" -m immediate -w stop >/dev/null ;;
	promote)
		"$bin/pg_ctl" -D "$dir/$standby" -w promote >/dev/null
		former=$primary former_port=$primary_port
		primary=$standby primary_port=$standby_port standby=$former standby_port=$former_port
		;;
	fence) "$bin/pg_ctl" -D "$dir/$standby" -m immediate -w stop >/dev/null ;;
	rebuild) follow "$standby" "$standby_port" ;;
	esac
	echo "$what done"
done
