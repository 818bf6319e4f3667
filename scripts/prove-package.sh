#!/usr/bin/env bash
# prove-package.sh NEW.deb [OLD.deb]: in an empty Debian, with systemd as process 1 in
# namespaces of its own: installs a package by docs/install.md, upgrades it, restores a backup
# as root, reads a secret from a credential, removes and purges. Needs root and mmdebstrap.
# DEBIAN_ROOT names a directory to keep that Debian in.
set -euo pipefail
new=$(realpath "$1") old=$(realpath "${2:-$1}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=${DEBIAN_ROOT:-$work/root}
[ -d "$root/etc" ] || mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,ca-certificates,curl,iproute2 bookworm "$root"
rm -rf "$root/proof"
mkdir -p "$root/proof" "$root/old"
cp "$new" "$root/proof/new.deb"
cp "$old" "$root/proof/old.deb"
cat >"$root/etc/systemd/system/proof.service" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
After=systemd-journald.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c '/proof/steps >/proof/log 2>&1 && touch /proof/passed; touch /proof/ended'
UNIT
cat >"$root/proof/steps" <<'STEPS'
#!/bin/sh
set -eux
cd /proof
ready() { curl -sf http://127.0.0.1:8080/readyz; }
ip link set lo up
dpkg -i old.deb
systemctl enable --now muster
muster-admin company create --slug acme --name Acme
echo "a long password of a test" >password
muster-admin user create --company acme --email a@example.com --role admin --password-stdin <password
ready
test "$(systemctl show muster -p NotifyAccess --value)" = main
dpkg -i new.deb
systemctl is-active muster
ready
muster-admin backup /proof/backup.db
systemctl stop muster
test "$(systemctl show muster -p Result --value)" = success
muster-admin restore /proof/backup.db
systemctl start muster
ready
echo sqlite:/var/lib/muster/muster.db >/etc/muster/credentials/database
sed -i 's/^MUSTER_DATABASE=/#&/; s/^#MUSTER_DATABASE_FILE/MUSTER_DATABASE_FILE/' /etc/muster/muster.env
systemctl restart muster
ready
muster-admin company list | grep acme
dpkg -r muster
if systemctl is-active muster; then exit 1; fi
test -f /var/lib/private/muster/muster.db
dpkg -P muster
for left in /etc/muster /var/lib/muster /var/lib/private/muster; do test ! -e $left; done
STEPS
chmod +x "$root/proof/steps"
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
for _ in $(seq 180); do
	[ ! -e "$root/proof/ended" ] || break
	sleep 1
done
kill -KILL $system 2>/dev/null || :
[ -e "$root/proof/passed" ] || { cat "$root/proof/log" "$work/console" >&2; echo "the package does not hold" >&2; exit 1; }
echo "installed, upgraded, restored, removed, purged"
