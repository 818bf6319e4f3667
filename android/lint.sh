#!/usr/bin/env bash
# lint.sh OUT: checks the app that build.sh made in OUT: the Android API that it uses, its
# manifest, its signature and its form.
set -euo pipefail
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
signatures=$(./artifacts.sh lint)
asm=$(./artifacts.sh test | grep '/asm-[0-9.]*\.jar$')
mkdir -p "$out/lint"
javac -encoding UTF-8 -proc:none -cp "$asm" -d "$out/lint" $(find tools/lint -name '*.java')
java -cp "$out/lint:$asm" dev.muster.lint.ApiLint "$signatures" api.txt "$out/classes"
"$out/prebuilt/linux/aapt2" dump xmltree --file AndroidManifest.xml "$out/muster-agent.apk" |
	java tools/Manifest.java | diff <(grep -v '^#' manifest.txt | sed 's/ *#.*//') - >"$out/manifest.diff" || {
	echo "cannot accept the manifest: it is not what android/manifest.txt says:" >&2
	cat "$out/manifest.diff" >&2
	exit 1
}
apksigner verify --min-sdk-version 28 "$out/muster-agent.apk"
if unzip -l "$out/muster-agent.apk" | grep -E '\.so$|jvm'; then
	echo "cannot accept the app: it holds native code or the JVM's program" >&2
	exit 1
fi
