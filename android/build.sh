#!/usr/bin/env bash
# build.sh OUT: builds the app into the folder OUT: classes, muster-agent-unsigned.apk
# (the same bytes wherever it is built) and the signed muster-agent.apk.
#
# MUSTER_APP_KEY names a PKCS #12 file with the key to sign with; apksigner asks for
# its password, or takes it from MUSTER_APP_KEY_PASSWORD. Without it a test key is
# made in this folder once, whose certificate says that it is one.
#
# MUSTER_APP_PACKAGE and MUSTER_APP_NAME are the package and the name that the app is
# shown with, by default dev.muster.agent and Muster. Who builds the app with a key of
# their own needs a package of their own: only one key can be registered for a package.
set -euo pipefail
if [ $# -ne 1 ]; then echo "usage: build.sh OUT" >&2; exit 2; fi

# First all missing programs in one message. Each line is a package and its programs. Only shell builtins are used here.
missing='' packages=''
while read -r package programs; do
	for program in $programs; do
		if ! command -v "$program" >/dev/null; then
			missing+=", $program"
			[[ " $packages " == *" $package "* ]] || packages+=" $package"
		fi
	done
done <<<'openjdk-17-jdk-headless javac java keytool
maven mvn
apksigner apksigner
unzip unzip
coreutils chmod cut date dirname mkdir rm sha256sum sort stat
findutils find
grep grep
sed sed'
if [ -n "$missing" ]; then
	echo "cannot build the app: these programs are missing: ${missing#, }; install them, on Debian as root with:" \
		"apt-get install$packages" >&2
	exit 1
fi

mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
version=$(sed -n 's/^version=//p' version.properties)
code=$(sed -n 's/^code=//p' version.properties)
built=$(sed -n 's/^built=//p' version.properties)
built=$(date -u -d "${built:?the day of the release}" +%s)
app_package=${MUSTER_APP_PACKAGE:-dev.muster.agent} name=${MUSTER_APP_NAME-}
if ! [[ $app_package =~ ^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$ ]] || [[ $name =~ [^[:alnum:]\ ._-] ]]; then
	echo "cannot build the app: MUSTER_APP_PACKAGE is a name such as com.example.device, MUSTER_APP_NAME letters," \
		"digits, spaces, dots, underscores and hyphens" >&2
	exit 1
fi

# Another build of the JDK or of apksigner most likely writes the same app: that is a warning. A release, which has a
# key, is made only with the programs of artifacts.txt.
while read -r use file sum package; do
	if [ "$use" = debian ] && [ "$(sha256sum "$file" 2>/dev/null | cut -d ' ' -f 1)" != "$sum" ]; then
		echo "$file is not that of $package, as in android/artifacts.txt: the app may differ" >&2
		if [ -n "${MUSTER_APP_KEY-}" ]; then
			echo "cannot build a release with it: install the package, or correct artifacts.txt after comparing both apps" >&2
			exit 1
		fi
	fi
done <artifacts.txt

mapfile -t jars < <(./artifacts.sh build)
[ ${#jars[@]} -eq 3 ] # android-all, dx, apktool
android=${jars[0]} dx=${jars[1]} apktool=${jars[2]}

rm -rf "$out/classes" "$out/gen" "$out/res.zip" "$out/name"
mkdir -p "$out/classes" "$out/gen"
unzip -qo "$apktool" prebuilt/linux/aapt2 prebuilt/android-framework.jar -d "$out"
chmod +x "$out/prebuilt/linux/aapt2"
mkdir -p "$out/gen/dev/muster/agent"
cat >"$out/gen/dev/muster/agent/Built.java" <<EOF
package dev.muster.agent;

/** Built is when the app was built, in Unix milliseconds: the day of version.properties. */
final class Built {
    static final long AT = ${built}000L;

    private Built() {}
}
EOF
"$out/prebuilt/linux/aapt2" compile --dir app/res -o "$out/res.zip"
named=()
if [ -n "$name" ]; then
	for language in values values-de; do
		mkdir -p "$out/name/$language"
		echo "<resources><string name=\"app_name\">$name</string></resources>" >"$out/name/$language/name.xml"
	done
	"$out/prebuilt/linux/aapt2" compile --dir "$out/name" -o "$out/name.zip"
	named+=(-R "$out/name.zip")
fi
[ "$app_package" = dev.muster.agent ] || named+=(--rename-manifest-package "$app_package")
# Other programs address the content provider by the app's package. The classes keep the package dev.muster.agent.
sed "s/authorities=\"dev\.muster\.agent\./authorities=\"$app_package./" app/AndroidManifest.xml >"$out/AndroidManifest.xml"
"$out/prebuilt/linux/aapt2" link -I "$out/prebuilt/android-framework.jar" --manifest "$out/AndroidManifest.xml" \
	--custom-package dev.muster.agent "${named[@]}" --min-sdk-version 28 --target-sdk-version 35 \
	--version-code "$code" --version-name "$version" \
	--java "$out/gen" -o "$out/base.apk" "$out/res.zip"

find core/src app/src "$out/gen" -name '*.java' | LC_ALL=C sort >"$out/sources"
javac -encoding UTF-8 --release 8 -proc:none -Xlint:all,-classfile,-options,-processing,-try -Werror \
	-cp "$android" -d "$out/classes" "@$out/sources"

# dx cannot translate invokedynamic, with which javac compiles lambdas and, for newer releases, string concatenation.
if grep -rlE 'LambdaMetafactory|StringConcatFactory' "$out/classes"; then
	echo "cannot build the app: the classes above use invokedynamic; write the lambdas as classes" >&2
	exit 1
fi
java -cp "$dx" com.android.dx.command.Main --dex --min-sdk-version=28 --output="$out/classes.dex" "$out/classes"

java tools/Pack.java "$out/base.apk" "$out/classes.dex" "$out/muster-agent-unsigned.apk"

key=${MUSTER_APP_KEY-} password=${MUSTER_APP_KEY_PASSWORD-}
if [ -z "$key" ]; then
	key=$PWD/test-key.p12 password=test-key
	if [ ! -e "$key" ]; then
		keytool -genkeypair -keystore "$key" -storetype PKCS12 -storepass "$password" -alias muster -keyalg RSA -keysize 3072 \
			-validity 10950 -dname "CN=Muster test key (not for distribution)" 2>/dev/null
		chmod 600 "$key"
	fi
fi
pass=()
if [ -n "$password" ]; then
	export MUSTER_APP_KEY_PASSWORD=$password
	pass=(--ks-pass env:MUSTER_APP_KEY_PASSWORD)
fi
apksigner sign --ks "$key" "${pass[@]}" --min-sdk-version 28 --v1-signing-enabled false --v2-signing-enabled true \
	--v3-signing-enabled true --v4-signing-enabled false --in "$out/muster-agent-unsigned.apk" --out "$out/muster-agent.apk"
apksigner verify --min-sdk-version 28 "$out/muster-agent.apk"
size=$(stat -c %s "$out/muster-agent.apk")
if [ "$size" -ge 307200 ]; then
	echo "cannot accept the app: $size bytes, the limit is 307200" >&2
	exit 1
fi
echo "$out/muster-agent.apk: version $version, $size bytes" >&2
