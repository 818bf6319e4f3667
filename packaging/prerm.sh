#!/bin/sh
# Before the package is removed: "remove" of dpkg, 0 of rpm. An upgrade leaves the service
# running until the new program is there.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then systemctl stop muster.service; fi
	if command -v systemctl >/dev/null; then systemctl disable --quiet muster.service; fi
fi
