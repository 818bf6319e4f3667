#!/usr/bin/env bash
# release.sh: the files of a release, in dist/: archives, packages, an image, a list of
# components, checksums (docs/install.md). The same commit gives the same bytes.
#
# MUSTER_RELEASE_KEY      minisign key that signs the checksums; MUSTER_RELEASE_PASSWORD
#                         is its password. Without a key the release says that it is unsigned.
# MUSTER_APP_KEY          key of the Android app (docs/android.md)
# MUSTER_RELEASE_TARGETS  systems to build for; by default all
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --abbrev=12 --dirty)} # as long in every clone
epoch=$(git log -1 --format=%ct)
targets=${MUSTER_RELEASE_TARGETS-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}
dist=${DIST:-dist}
rm -rf "$dist"
mkdir -p "$dist"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT

# A release holds the Android app. The key to sign it with is its maintainers' alone
# (docs/android.md); the test key's app is not for others. The unsigned app can be
# signed later.
tags=
if [ -n "${MUSTER_APP_KEY-}" ]; then
	android/build.sh bin/app
	cp bin/app/muster-agent.apk internal/apk/
	cp bin/app/muster-agent.apk "$dist/muster-agent-$version.apk"
	tags=muster_app
elif [ "${MUSTER_RELEASE_APP-}" != no ] && android/build.sh "$build/app"; then
	cp "$build/app/muster-agent-unsigned.apk" "$dist/muster-agent-$version-unsigned.apk"
	echo "THE ANDROID APP IS UNSIGNED and not in the programs: set MUSTER_APP_KEY to the key that signs it" >&2
else
	echo "WITHOUT THE ANDROID APP: set MUSTER_APP_KEY to the key that signs it" >&2
fi

VERSION=$version scripts/agents.sh "$build/devices"
for target in $targets; do
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath ${tags:+-tags "$tags"} \
		-ldflags "-s -w -X main.version=$version" -o "$build/${target/\//-}/" ./cmd/muster
done
# The manual is written by the program itself, built for this machine.
CGO_ENABLED=0 go build -trimpath -o "$build/own/" ./cmd/muster
"$build/own/muster" man "$build/man"
go -C tools run ./release -version "$version" -epoch "$epoch" -build "$build" -out "$(cd "$dist" && pwd)" \
	-key "${MUSTER_RELEASE_KEY:+$(realpath "$MUSTER_RELEASE_KEY")}"
