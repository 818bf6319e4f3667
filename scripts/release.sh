#!/usr/bin/env bash
# release.sh: static programs for Linux as archives with checksums, in dist/.
# The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --dirty)}
epoch=$(git log -1 --format=%ct)
rm -rf dist
# A release holds the Android app. The key to sign it with is its maintainers' alone
# (docs/android.md); the test key's app is not for others.
if [ -n "${MUSTER_APP_KEY-}" ]; then
	android/build.sh bin/app
	cp bin/app/muster-agent.apk internal/apk/
	export TAGS=muster_app
else
	echo "WITHOUT THE ANDROID APP: set MUSTER_APP_KEY to the key that signs it" >&2
fi
for arch in amd64 arm64; do
	name=muster-$version-linux-$arch
	GOOS=linux GOARCH=$arch VERSION=$version scripts/build.sh "dist/$name"
	cp LICENSE README.md CHANGELOG.md "dist/$name/"
	tar -C dist --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=go+u,go-w -cf - "$name" |
		gzip -n >"dist/$name.tar.gz"
	rm -r "dist/$name"
done
(cd dist && sha256sum ./*.tar.gz | tee SHA256SUMS)
