#!/usr/bin/env bash
# test.sh OUT [CLASS...]: builds the app into OUT and runs its tests on the JVM: those that
# need no Android, and those on the framework's own classes of Android 9, 13 and 15.
set -euo pipefail
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")"
[ -n "${MUSTER_APP_BUILT-}" ] || ./build.sh "$out"
mapfile -t build < <(./artifacts.sh build)
jars=$(./artifacts.sh test | paste -sd:)
mkdir -p "$out/sdk"
./artifacts.sh sdk | while read -r file; do ln -sf "$file" "$out/sdk/"; done

rm -rf "$out/tests"
mkdir -p "$out/tests/com/android/tools"
find test -name '*.java' >"$out/test-sources"
javac -encoding UTF-8 --release 17 -proc:none -nowarn -cp "$out/classes:$jars:${build[0]}" -d "$out/tests" "@$out/test-sources"
cat >"$out/tests/com/android/tools/test_config.properties" <<EOF
android_resource_apk=$out/base.apk
android_merged_manifest=$PWD/app/AndroidManifest.xml
android_custom_package=dev.muster.agent
EOF
if [ $# -eq 0 ]; then
	mapfile -t classes < <(cd test && find . -name '*Test.java' | sed -E 's#^\./[^/]*/##; s#/#.#g; s#\.java$##' | LC_ALL=C sort)
	set -- "${classes[@]}"
fi
nice java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx1g -Drobolectric.offline=true -Drobolectric.dependency.dir="$out/sdk" \
	-Drobolectric.graphicsMode=LEGACY -Drobolectric.sqliteMode=LEGACY \
	-cp "$out/tests:$out/classes:$jars:${build[0]}" org.junit.runner.JUnitCore "$@"
