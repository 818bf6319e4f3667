#!/usr/bin/env bash
# prove-package.sh NEW OLD: in an empty Debian, with systemd as process 1 in namespaces of its
# own: installs the package of a release by docs/install.md, enrolls a first device, upgrades
# from the package in OLD under load, restores a backup as root, removes and purges; then the
# same with the package for Red Hat. NEW and OLD are directories that scripts/release.sh filled.
# Needs root and mmdebstrap. DEBIAN_ROOT names a directory to keep a copy of that Debian in.
set -euo pipefail
new=$(realpath "$1") old=$(realpath "$2")
cd "$(dirname "$0")/.."
. scripts/blocks.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
debian() { mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,ca-certificates,curl,iproute2,rpm bookworm "$1"; }
if [ -n "${DEBIAN_ROOT-}" ]; then
	[ -d "$DEBIAN_ROOT/etc" ] || debian "$DEBIAN_ROOT"
	cp -a "$DEBIAN_ROOT" "$root"
else
	debian "$root"
fi
mkdir -p "$root/proof/packages" "$root/old"
cp -r scripts/prove-package/. "$root/proof/"
cp "$new"/*_amd64.deb "$root/proof/packages/new.deb"
cp "$old"/*_amd64.deb "$root/proof/packages/old.deb"
cp "$new"/*.x86_64.rpm "$root/proof/packages/new.rpm"
cp "$old"/*.x86_64.rpm "$root/proof/packages/old.rpm"

# What readers copy, with their own values.
documented() { block "${@:2}" >"$root/proof/$1"; } # FILE PAGE NAME [EXPRESSION...]
documented install docs/install.md package 's|muster_VERSION-1_amd64.deb|packages/old.deb|' \
	's|--role admin|& --password-stdin </proof/password|'
documented first-device docs/install.md first-device
documented first-command docs/install.md first-command
documented upgrade docs/install.md upgrade 's|muster_NEW-VERSION-1_amd64.deb|packages/new.deb|'
documented restore docs/install.md restore 's|muster-2026-11-22.db|muster-*.db|'

cat >"$root/etc/systemd/system/proof.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
After=systemd-journald.service
[Service]
Type=oneshot
WorkingDirectory=/proof
Environment=HOME=/root
ExecStart=/bin/sh -c '(sh -eux debian.sh && sh -eux redhat.sh) >log 2>&1 && touch passed; touch ended'
UNIT
cat >"$work/boot" <<BOOT
set -e
mount --make-rprivate /
mount --bind $root $root
mount -t proc proc $root/proc
mount -t sysfs sysfs $root/sys
mount -t cgroup2 none $root/sys/fs/cgroup
mount -t tmpfs tmpfs $root/run
mount -t tmpfs tmpfs $root/tmp
mount --rbind /dev $root/dev
cd $root
pivot_root . old
umount -l /old
mount --make-rshared / # as systemd does outside containers; credentials need it
exec /lib/systemd/systemd --system --unit=proof.service
BOOT
unshare -pfmCuin --kill-child=SIGKILL sh -c "container=x exec sh $work/boot" >"$work/console" 2>&1 &
system=$!
for _ in $(seq 300); do
	[ ! -e "$root/proof/ended" ] || break
	sleep 1
done
kill -KILL $system 2>/dev/null || :
[ -e "$root/proof/passed" ] || { cat "$root/proof/log" "$work/console" >&2; echo "the package does not hold" >&2; exit 1; }
cat "$root/proof/result"
