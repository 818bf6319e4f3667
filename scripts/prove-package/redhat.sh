# Steps of scripts/prove-package.sh with the package for Red Hat. The dependencies are
# Debian's: rpm does not know them.
. ./functions.sh
rpm --initdb
rpm -i --nodeps packages/old.rpm
if systemctl is-active muster || systemctl is-enabled muster; then exit 1; fi
systemctl enable --now muster
eventually ready
rpm -V --nodeps muster
muster-admin company create --slug acme --name Acme
echo "# changed" >>/etc/muster/muster.env
pid=$(systemctl show muster -p MainPID --value)
rpm -U --nodeps --replacepkgs packages/new.rpm
systemctl is-active muster
test "$(systemctl show muster -p MainPID --value)" != "$pid"
eventually ready
grep changed /etc/muster/muster.env
muster-admin company list | grep acme
rpm -e muster
if systemctl is-active muster || systemctl is-enabled muster; then exit 1; fi
test -f /var/lib/private/muster/muster.db
test -f /etc/muster/muster.env.rpmsave
test ! -e /usr/bin/muster
test ! -e /usr/lib/systemd/system/muster.service
say "rpm: installed, verified, upgraded, removed; data and changed settings are left"

# Into an empty root: what is installed, as it is in the package.
mkdir /proof/empty
rpm --root /proof/empty --dbpath /rpm -i --nodeps --noscripts packages/new.rpm
rpm --root /proof/empty --dbpath /rpm -V --nodeps muster
test "$(stat -c '%a %u %g' /proof/empty/etc/muster/muster.env)" = "600 0 0"
test "$(stat -c '%a %u %g' /proof/empty/etc/muster/credentials)" = "700 0 0"
test "$(stat -c '%a %u %g' /proof/empty/usr/bin/muster)" = "755 0 0"
chroot /proof/empty /usr/bin/muster version
say "rpm: $(find /proof/empty -path /proof/empty/rpm -prune -o -type f -print | wc -l) files in an empty root, verified," \
	"and the program runs there"
