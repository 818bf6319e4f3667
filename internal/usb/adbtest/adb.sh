#!/bin/sh
# Plays adb for the devices in the directory of this script (adbtest.go).
dir=${0%/*}
printf '%s\n' "$*" >>"$dir/calls"
fail() {
	printf '%s\n' "$1" >&2
	exit 1
}
while :; do
	case $1 in
	-P | -H) shift 2 ;;
	-s) serial=$2 && shift 2 ;;
	*) break ;;
	esac
done
command=$1
shift
case $command in
start-server) exit 0 ;;
devices) echo "List of devices attached" && cat "$dir/devices" && echo && exit 0 ;;
track-devices) exec cat "$dir/track" ;;
esac

device=$dir/device/$serial
[ -n "$serial" ] && [ -d "$device" ] || fail "error: device '$serial' not found"
state=$(cat "$device/state") root=$(cat "$device/root") uid=$(cat "$device/uid")
[ "$state" = device ] || fail "error: device $state."
case $command in
shell)
	. "$device/shell"
	device_runs() { # the device's shell knows [ itself
		if [ "$1" = "[" ]; then [ "$2" "$root$3" ]; else run "$@"; fi
	}
	eval "device_runs $*"
	;;
push) # as adb on a device: it makes the directory, and gives all others what the owner gets
	parent=$(dirname "$root$2")
	mode=$(stat -L -c %a "$1")
	if [ ! -e "$parent" ]; then mkdir -p "$parent" && [ "$uid" = 0 ] || chown "$uid:$uid" "$parent"; fi
	rm -f "$root$2"
	cat "$1" 2>/dev/null >"$root$2" || fail "adb: error: failed to copy '$1' to '$2': remote couldn't create file"
	chmod "$mode" "$root$2" && chmod go=u "$root$2"
	[ "$uid" = 0 ] || chown "$uid:$uid" "$root$2"
	;;
*) fail "adb: unknown command $command" ;;
esac
