#!/bin/sh
# After the package was removed. Only "purge" of dpkg removes settings and data.
set -e
if [ "$1" = purge ]; then
	rm -rf /etc/muster /var/lib/private/muster
	rm -rf /var/lib/muster
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
