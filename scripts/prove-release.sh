#!/usr/bin/env bash
# prove-release.sh [OUT]: makes the whole release of this commit twice, in two clones, with other
# directories, umask, zone and time; compares all bytes, and verifies the release by
# docs/install.md. The keys, of the checksums and of the Android app, are thrown away. OUT keeps
# the first one. Needs minisign, rpm, and what android/build.sh needs; takes twenty minutes.
# MUSTER_RELEASE_TARGETS names fewer systems.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/blocks.sh
root=$PWD work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$(realpath -m "${1:-$work/one}")
minisign -G -W -f -p "$work/public" -s "$work/key" >/dev/null
export MUSTER_RELEASE_KEY=$work/key MUSTER_APP_KEY=$work/app.p12 MUSTER_APP_KEY_PASSWORD=thrown-away
keytool -genkeypair -keystore "$MUSTER_APP_KEY" -storetype PKCS12 -storepass "$MUSTER_APP_KEY_PASSWORD" -alias app -keyalg RSA \
	-keysize 3072 -validity 1 -dname "CN=proof" 2>/dev/null

git clone -q --no-hardlinks "$root" "$work/first"
(umask 022 && cd "$work/first" && DIST=$out make release) >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
git clone -q --no-hardlinks "$work/first" "$work/second-in-another-place" # the same commit, whatever happens here
sleep 2 # another second
(umask 077 && cd "$work/second-in-another-place" && TZ=Asia/Tokyo DIST=$work/two make release) >"$work/log" 2>&1 ||
	{ cat "$work/log" >&2; exit 1; }
diff -r "$out" "$work/two"

for file in "$out"/*.rpm; do rpm -K --nosignature "$file" >/dev/null; done
for file in "$out"/*.deb; do dpkg-deb --info "$file" >/dev/null; done
apksigner verify --min-sdk-version 28 "$out"/*.apk
block docs/install.md verify "s|PUBLIC-KEY|$(tail -1 "$work/public")|" >"$work/verify"
(cd "$out" && sh -eu "$work/verify")
ls -l "$out"
echo "two releases, byte for byte the same"
