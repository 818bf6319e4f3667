# Sourced by the other scripts: installs Debian packages that are missing.
# shellcheck shell=bash

# say prints a step's heading, so that a long log can be skimmed.
say() { printf '\n== %s\n' "$*" >&2; }

# The flags of every step that uses the race detector: with the same flags the
# steps share one compilation. What computes on memory of its own is not watched:
# the SQLite engine, which is C translated to Go, and the hashing of passwords and
# compression. That made tests up to four times as slow, and no race of ours is in there.
# shellcheck disable=SC2034 # used by the scripts that source this file
race=(-race '-gcflags=modernc.org/...=-race=false' '-gcflags=golang.org/x/crypto/argon2=-race=false'
	'-gcflags=compress/flate=-race=false' '-gcflags=crypto/internal/...=-race=false')

# has_postgres looks for PostgreSQL's programs where pgtest/programs.sh does.
has_postgres() {
	command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
		[ -x /usr/local/pgsql/bin/initdb ]
}

# as_root runs a command as root, or fails when that takes a password.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

# no_cluster keeps Debian from setting up and starting a server of its own when
# PostgreSQL is installed for the tests alone.
no_cluster() {
	local file=/etc/postgresql-common/createcluster.conf
	[ ! -e $file ] || return 0
	as_root sh -c "mkdir -p ${file%/*} && echo 'create_main_cluster = false' >$file" &&
		echo "wrote $file: no server is set up by the package, pg_createcluster makes one" >&2
}

# debian_has reports whether this release has a package.
debian_has() {
	apt-cache show "$1" >/dev/null 2>&1 ||
		{ as_root apt-get -qq update >/dev/null 2>&1 && apt-cache show "$1" >/dev/null 2>&1; }
}

# debian_install installs packages, or tells what is missing and returns 1.
debian_install() {
	say "installing Debian packages: $*"
	if ! command -v apt-get >/dev/null; then
		echo "this is not Debian: install the equivalents of $* yourself" >&2
		return 1
	fi
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold)
	if as_root "${apt[@]}" update >/dev/null && as_root "${apt[@]}" install -y --no-install-recommends "$@" >/dev/null; then
		return 0
	fi
	echo "cannot install them here; as root: apt-get install $*" >&2
	return 1
}

# debian_unpack unpacks packages below bin/debian and adds their programs to PATH. They are
# not installed: they would start services, and one that bans addresses.
debian_unpack() {
	local root=$PWD/bin/debian
	if [ ! -e "$root/$*" ]; then
		say "unpacking Debian packages: $*"
		mkdir -p "$root"
		(
			cd "$root"
			local download=(apt-get -qq -o APT::Sandbox::User=root download "$@")
			"${download[@]}" 2>/dev/null || { as_root apt-get -qq update >/dev/null && "${download[@]}"; } || exit 1
			for file in *.deb; do dpkg -x "$file" . || exit 1; done
			rm ./*.deb && : >"$*"
		) || return 1
	fi
	export PATH="$root/usr/bin:$PATH" PYTHONPATH="$root/usr/lib/python3/dist-packages"
}

# test_packages installs what the tests use besides Go. Without them, the tests
# that need them are skipped, or fail where CI=true.
test_packages() {
	local missing=() program
	command -v gcc >/dev/null || missing+=(gcc libc6-dev) # for -race
	command -v zbarimg >/dev/null || missing+=(zbar-tools)
	command -v adb >/dev/null || missing+=(adb) # muster usb
	command -v curl >/dev/null || missing+=(curl) # the documentation's commands
	# The portal's pages. The shell has no window of its own and takes half the time; not every release has it.
	command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || command -v google-chrome >/dev/null ||
		if debian_has chromium-headless-shell; then missing+=(chromium-headless-shell); else missing+=(chromium); fi
	command -v javac >/dev/null || missing+=(openjdk-17-jdk-headless) # the Android app
	command -v mvn >/dev/null || missing+=(maven)                     # fetches what the app is built with
	# Only in CI: Debian's packages also start a pooler and proxies as services, and
	# two shells and what is unpacked below are for one test each.
	if [ "${CI-}" = true ]; then
		for program in pgbouncer nginx haproxy caddy zsh fish; do
			command -v $program >/dev/null || [ -x /usr/sbin/$program ] || missing+=($program)
		done
	fi
	command -v apksigner >/dev/null || missing+=(apksigner)           # signs and verifies it
	command -v unzip >/dev/null || missing+=(unzip)
	[ -x /usr/bin/enjarify ] || missing+=(enjarify) # its bytecode, run on a JVM
	if [ -z "${MUSTER_TEST_POSTGRES-}" ] && ! has_postgres; then
		no_cluster || :
		missing+=(postgresql)
	fi
	[ ${#missing[@]} -eq 0 ] || debian_install "${missing[@]}" || [ "${CI-}" != true ] || return 1
	[ "${CI-}" != true ] || debian_unpack fail2ban prometheus
}

# web_packages installs what builds web/. It fails where that is missing: with
# CI=true the whole script, else its caller goes on without.
web_packages() {
	local missing=()
	command -v node >/dev/null || missing+=(nodejs)
	command -v npm >/dev/null || missing+=(npm)
	[ ${#missing[@]} -gt 0 ] || return 0
	debian_install "${missing[@]}" && return 0
	[ "${CI-}" != true ] || exit 1
	return 1
}
