#!/bin/sh
# After the package was installed or upgraded: "configure OLD-VERSION" of dpkg, 1 or 2 of rpm.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ "$1" = 2 ] || { [ "$1" = configure ] && [ -n "$2" ]; }; then
		systemctl try-restart muster.service || echo "muster did not start again: journalctl -u muster says why" >&2
	fi
fi
