# Functions of the steps of scripts/prove-package.sh: requests during the upgrade.
# /proof/requests has a line for each: when it began and ended, its status, what it was.
KEY=$(muster-admin key create --company acme --name load --preset help-desk -o json | sed -n 's/.*"key": "\(.*\)".*/\1/p')
API=http://127.0.0.1:8080/api/v1/assets
ID=$(muster-admin asset list --company acme -o json | sed -n 's#.*"pathName": ".*/assets/\(.*\)".*#\1#p')

# commands lists the device's, one a line.
commands() { curl -sf -H "X-API-Key: $KEY" "$API/$ID/commands?size=100" | sed 's/{"type"/\n&/g' | grep '"type"'; }

request() { # request NAME ARGUMENTS-OF-CURL...
	name=$1
	shift
	began=$(uptime_now)
	code=$(curl -s -m 60 -o /dev/null -w '%{http_code}' -H "X-API-Key: $KEY" "$@") || :
	echo "$began $(uptime_now) $code $name" >>/proof/requests
}

load_begins() {
	rm -f stop
	(set +x; while [ ! -e stop ]; do request read "$API"; sleep 0.05; done) &
	(
		set +x
		for _ in 1 2 3 4 5 6 7 8 9; do
			[ -e stop ] || request message --json '{"title": "Hello", "body": "again"}' "$API/$ID/commands/message"
			sleep 1
		done
	) &
}

load_ends() { touch stop; sleep 1.5; }

# load_result fails if a request failed that did not meet the pause, as systemd measured it.
load_result() {
	left=$(systemctl show muster -p ActiveExitTimestampMonotonic --value)
	entered=$(systemctl show muster -p ActiveEnterTimestampMonotonic --value)
	awk -v left="$left" -v entered="$entered" -v begun="$begun" '
		BEGIN {
			left /= 1e6; entered /= 1e6
			if (left < begun || entered < left) { print "the service was not restarted" > "/dev/stderr"; exit 1 }
		}
		$1 > entered { after++ }
		$2 < left { before++ }
		$3 != 200 { failed++; if ($2 < left || $1 > entered + 0.02) { print "failed outside of the pause: " $0 > "/dev/stderr"; bad = 1 } }
		END {
			if (bad || before < 10 || after < 10) exit 1
			printf "%d requests, %d before and %d after the pause; %d failed, all in the pause of %.2f s\n",
				NR, before, after, failed, entered - left
		}' requests
}
