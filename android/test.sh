#!/usr/bin/env bash
# test.sh OUT [CLASS...]: builds the app into OUT, checks it, and runs its tests on the
# framework's own classes of Android 9, 13 and 15. It fails if fewer tests ran than there
# are: a runner that found none reports success. With CI=true it also builds the app a
# second time elsewhere and compares the two.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")"
tests=337 # each at three Android versions: add three for every new one; those of the core alone once
[ -n "${MUSTER_APP_BUILT-}" ] || ./build.sh "$out"

# again builds the app from a copy at another depth, with other modes and another time
# zone: before it is signed it must be the same file.
again() (
	umask 077
	mkdir -p "$out/again/a/b"
	cp -r app core tools artifacts.sh artifacts.txt build.sh version.properties "$out/again/a/b/"
	export TZ=Pacific/Auckland MUSTER_APP_KEY=$PWD/test-key.p12 MUSTER_APP_KEY_PASSWORD=test-key
	"$out/again/a/b/build.sh" "$out/again/out" 2>"$out/again/log" || { cat "$out/again/log" >&2; exit 1; }
	cmp "$out/muster-agent-unsigned.apk" "$out/again/out/muster-agent-unsigned.apk"
	# An operator's own build, under a package and a name of its own.
	export MUSTER_APP_PACKAGE=com.example.device MUSTER_APP_NAME='Example Devices'
	"$out/again/a/b/build.sh" "$out/again/named" 2>"$out/again/log" || { cat "$out/again/log" >&2; exit 1; }
	"$out/again/named/prebuilt/linux/aapt2" dump badging "$out/again/named/muster-agent.apk" >"$out/again/badging"
	grep -q "^package: name='com.example.device'" "$out/again/badging"
	grep -q "^application-label-de:'Example Devices'" "$out/again/badging"
	"$out/again/named/prebuilt/linux/aapt2" dump xmltree --file AndroidManifest.xml \
		"$out/again/named/muster-agent.apk" >"$out/again/manifest"
	grep -q 'authorities.*"com.example.device.enroll"' "$out/again/manifest"
	grep -q '"dev.muster.agent.AdminReceiver"' "$out/again/manifest"
)
second=
if [ "${CI-}" = true ] && [ $# -eq 0 ]; then
	rm -rf "$out/again"
	again &
	second=$!
fi
[ $# -gt 0 ] || ./lint.sh "$out"
[ $# -gt 0 ] || ./rules.sh
mapfile -t build < <(./artifacts.sh build)
jars=$(./artifacts.sh test | paste -sd:)
mkdir -p "$out/sdk"
./artifacts.sh sdk | while read -r file; do ln -sf "$file" "$out/sdk/"; done

rm -rf "$out/tests" "$out/tmp"
mkdir -p "$out/tests/com/android/tools" "$out/tmp"
find test -name '*.java' >"$out/test-sources"
javac -encoding UTF-8 --release 17 -proc:none -nowarn -cp "$out/classes:$jars:${build[0]}" -d "$out/tests" "@$out/test-sources"
cat >"$out/tests/com/android/tools/test_config.properties" <<EOF
android_resource_apk=$out/base.apk
android_merged_manifest=$PWD/app/AndroidManifest.xml
android_custom_package=dev.muster.agent
EOF
all=
if [ $# -eq 0 ]; then
	all=yes
	mapfile -t classes < <(cd test && find . -name '*Test.java' | sed -E 's#^\./[^/]*/##; s#/#.#g; s#\.java$##' | LC_ALL=C sort)
	set -- "${classes[@]}"
fi
nice java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx1g -Drobolectric.offline=true -Drobolectric.dependency.dir="$out/sdk" \
	-Dmuster.tests="$PWD/test" -Djava.io.tmpdir="$out/tmp" -Drobolectric.graphicsMode=LEGACY -Drobolectric.sqliteMode=LEGACY \
	-cp "$out/tests:$out/classes:$jars:${build[0]}" org.junit.runner.JUnitCore "$@" >"$out/tests.log" 2>&1 || {
	grep -v '^Intent = ' "$out/tests.log" >&2
	exit 1
}
ran=$(sed -n 's/^OK (\([0-9]*\) tests*)$/\1/p' "$out/tests.log")
echo "the app: ${ran:-no} tests on Android's classes passed" >&2
if [ -n "$all" ] && [ "${ran:-0}" -lt $tests ]; then
	echo "cannot accept that: there are $tests" >&2
	exit 1
fi
[ -z "$second" ] || wait "$second" || {
	echo "cannot build the same app twice, or under another name" >&2
	exit 1
}
