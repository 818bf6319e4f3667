#!/usr/bin/env bash
# prove-compose.sh IMAGE: runs the OCI archive of a release, and all of packaging/compose.yaml by
# docs/install.md, as processes in namespaces of their own (tools/compose): there is no container
# engine. Needs root, PostgreSQL, Caddy and curl.
set -euo pipefail
image=$(realpath "$1")
cd "$(dirname "$0")/.."
. scripts/blocks.sh
if [ -z "${PROOF_DIR-}" ]; then
	PROOF_DIR=$(mktemp -d)
	export PROOF_DIR
	trap 'rm -rf "$PROOF_DIR"' EXIT
	chmod 755 "$PROOF_DIR"
	CGO_ENABLED=0 go -C tools build -o "$PROOF_DIR/bin/compose" ./compose
	unshare -mnpf --kill-child=SIGKILL --mount-proc "$0" "$image"
	exit
fi
export PROOF_IMAGE=$image PROOF_FILE=$PROOF_DIR/site/compose.yaml PATH=$PROOF_DIR/bin:$PATH
mkdir -p /run/netns "$PROOF_DIR/site"
mount -t tmpfs tmpfs /run/netns
ip link set lo up
trap 'tail -n 60 "$PROOF_DIR"/log >&2' ERR

# eventually COMMAND... waits for a command to succeed, for at most a minute.
eventually() {
	for _ in $(seq 120); do
		if "$@" >"$PROOF_DIR/said" 2>&1; then return 0; fi
		sleep 0.5
	done
	cat "$PROOF_DIR/said" >&2
	echo "not within a minute: $*" >&2
	return 1
}

# The image by itself: it serves, and writes its volume only.
compose image 2>>"$PROOF_DIR/log" &
eventually curl -sf http://172.30.1.2:8080/readyz
root=$PROOF_DIR/image
test "$(stat -c '%u %g %a' "$root-volume")" = "1000 1000 700"
test "$(find "$root-volume" -name muster.db -uid 1000 | wc -l)" = 1
cp "$root/usr/bin/muster" "$PROOF_DIR/bin/muster"
certificates=$(openssl storeutl -noout -certs "$root/etc/ssl/certs/ca-certificates.crt" | sed -n 's/Total found: //p')
test "$certificates" -gt 100
pid=$(pgrep -fx '/usr/bin/muster serve')
grep -qx 'Uid:	1000	1000	1000	1000' "/proc/$pid/status"
grep -qx 'CapEff:	0000000000000000' "/proc/$pid/status"
kill -TERM "$pid"
wait %1
written=$(find "$root" -xdev -newer "$root.json" -not -type d)
test -z "$written" || { echo "the image wrote $written" >&2; exit 1; }
echo "the image: answers /readyz as user 1000, wrote only its volume, stopped with 0, has $certificates authorities"
umount /etc/hosts
ip link del proof

# The compose file by the documentation, with a name for which Caddy makes the certificate itself.
cp packaging/compose.yaml packaging/Caddyfile "$PROOF_DIR/site"
cat >"$PROOF_DIR/bin/podman" <<'PODMAN'
#!/bin/sh
set -e
test "$1" = compose
shift
if [ "$*" = "up -d" ]; then compose up 2>>"$PROOF_DIR/log" & else exec compose "$@"; fi
PODMAN
chmod +x "$PROOF_DIR/bin/podman"
block docs/install.md compose 's/muster.example.com/muster.localhost/' >"$PROOF_DIR/steps"
(cd "$PROOF_DIR/site" && sh -eu "$PROOF_DIR/steps")
address() { awk -v name="$1" '$2 == name { print $1 }' "$PROOF_DIR/hosts"; }
# page PATH gets a page as a browser does, over Caddy.
page() {
	curl -sS -f -L -m 10 --cacert "$PROOF_DIR"/caddy-caddy/caddy/pki/authorities/local/root.crt \
		--resolve "muster.localhost:443:$(address caddy)" --resolve "muster.localhost:80:$(address caddy)" "$@"
}
eventually page https://muster.localhost/readyz
page http://muster.localhost/ | grep -q '<title>Sign in'
eventually curl -sf "http://$(address muster1):8080/readyz"
eventually curl -sf "http://$(address muster2):8080/readyz"
test "$(page -o /dev/null -w '%{http_code}' https://muster.localhost/metrics || true)" = 404
echo "compose: both replicas are ready, and Caddy answers with the page to sign in"

echo "a long password of a test" >"$PROOF_DIR/password"
block docs/install.md compose-company "s|--role admin|& --password-stdin <$PROOF_DIR/password|" >"$PROOF_DIR/steps"
sh -eu "$PROOF_DIR/steps"
compose exec muster2 muster company list | grep -q acme
for name in muster1 muster2; do
	pid=$(ip netns pids $name | head -1)
	for line in 'Uid:	1000	1000	1000	1000' 'CapBnd:	0000000000000000' 'NoNewPrivs:	1'; do
		grep -qx "$line" "/proc/$pid/status" || { echo "$name lacks $line" >&2; exit 1; }
	done
	awk '$5 == "/" { print $6 }' "/proc/$pid/mountinfo" | grep -q '^ro' || { echo "the files of $name are not read-only" >&2; exit 1; }
	test -z "$(find "$PROOF_DIR/$name-volume" -mindepth 1)"
done
echo "compose: the replicas run as user 1000 without capabilities on files that they cannot write"

# One replica stops and is started again, as its restart policy says. No page fails.
kill -TERM "$(ip netns pids muster1 | head -1)"
for _ in $(seq 100); do
	page -o /dev/null https://muster.localhost/
	sleep 0.1
done
eventually curl -sf "http://$(address muster1):8080/readyz"
echo "compose: a replica stopped and was started again while 100 pages were answered"
