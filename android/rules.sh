#!/usr/bin/env bash
# rules.sh [write]: compares test/rules.tsv with what the system services of Android 9, 13
# and 15 enforce, as their artifacts of artifacts.txt have it; write writes it again. The
# fake behind the app's tests refuses by this list.
set -euo pipefail
cd "$(dirname "$0")"
asm=$(./artifacts.sh test | grep '/asm-[0-9.]*\.jar$')
mapfile -t sdk < <(./artifacts.sh sdk)
[ ${#sdk[@]} -eq 3 ] # 28, 33, 35
list() {
	echo '# Written by android/rules.sh: API level, method, and what refuses in DevicePolicyManagerService, in its order.'
	java -cp "$asm" tools/Rules.java 28 "${sdk[0]}" 33 "${sdk[1]}" 35 "${sdk[2]}"
}
if [ "${1-}" = write ]; then
	list >test/rules.tsv
else
	list | diff test/rules.tsv - || {
		echo "test/rules.tsv is not what Android enforces: make android-rules ARGS=write" >&2
		exit 1
	}
fi
