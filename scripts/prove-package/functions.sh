# Functions of the steps of scripts/prove-package.sh.
say() { echo "$*" >>/proof/result; }
ready() { curl -sf http://127.0.0.1:8080/readyz; }
uptime_now() { cut -d ' ' -f 1 /proc/uptime; }

# eventually COMMAND waits for a command to succeed, for at most 30 seconds.
eventually() {
	for _ in $(seq 150); do
		if eval "$1"; then return 0; fi
		sleep 0.2
	done
	echo "not within 30 seconds: $1" >&2
	journalctl -u muster --no-pager | tail -50 >&2
	return 1
}

# files lists what is on the disk, but for the proof's own, logs and what package managers keep.
files() {
	find / -xdev \( -path /proof -o -path /var/log -o -path /var/cache -o -path /var/lib/apt -o -path /var/lib/rpm \
		-o -path /var/lib/systemd -o -path '/var/lib/dpkg/*-old' -o -path /var/lib/dpkg/lock \) -prune -o -print | sort
}

# owned fails if a file of the service is not the service's user's.
owned() {
	user=$(stat -c %u /var/lib/private/muster)
	test "$user" -ge 61184 # systemd's dynamic users
	test -z "$(find /var/lib/private/muster ! -uid "$user")"
}
