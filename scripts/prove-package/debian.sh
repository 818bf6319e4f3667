# Steps of scripts/prove-package.sh with the package for Debian.
. ./functions.sh
ip link set lo up
files >before
echo "a long password of a test" >password

# The documentation, from the package to a command that a device carried out.
sh -eux install
ready
test "$(systemctl show muster -p NotifyAccess --value)" = main
systemd-analyze security --threshold=14 muster >exposure
sh -eux first-device &
eventually 'muster-admin asset list --company acme | grep ACTIVE'
sh -eux first-command >answers
cat answers
grep '"status":"\(IN_PROGRESS\|SUCCESS\)"' answers
. ./load.sh
load_begins
eventually 'commands | grep SUCCESS'

# The upgrade, while a script sends requests. Only those that meet the pause may fail.
pid=$(systemctl show muster -p MainPID --value)
begun=$(uptime_now)
sh -eux upgrade
systemctl is-active muster
test "$(systemctl show muster -p MainPID --value)" != "$pid"
ready
sleep 3
load_ends
say "upgrade under load: $(load_result)"
eventually 'test "$(commands | grep -c SUCCESS)" = "$(($(grep -c " 200 message" requests) + 1))"'
test "$(commands | grep -c NOTIFICATION_MESSAGE)" = "$(($(grep -c " 200 message" requests) + 1))"
say "commands accepted before, during and after the upgrade: $(($(grep -c " 200 message" requests) + 1))," \
	"each in the history once and carried out"

# A backup restored as root, and a key file rotated as root: all is the service's.
sh -eux restore
owned
ready
muster-admin doctor --rotate-key-file /var/lib/muster/muster.db.keys
systemctl restart muster
owned
ready
muster-admin company list | grep acme
say "restored and rotated as root: all files are the service's"

# Secrets in files, as systemd hands them over.
cp /var/lib/muster/muster.db.keys /etc/muster/credentials/keys
echo sqlite:/var/lib/muster/muster.db >/etc/muster/credentials/database
sed -i 's/^MUSTER_DATABASE=/#&/; s/^#\(MUSTER_[A-Z]*_FILE=\)/\1/' /etc/muster/muster.env
systemctl restart muster
ready
grep -q '^MUSTER_KEY_FILE' /etc/muster/muster.env
muster-admin company list | grep acme

apt-get remove -y muster
if systemctl is-active muster; then exit 1; fi
test -f /var/lib/private/muster/muster.db
test -f /etc/muster/muster.env
apt-get purge -y muster
rm -rf /root/muster-*.db /usr/local/bin/muster-agent
files >after
diff before after
say "removed, purged: no file is left"
