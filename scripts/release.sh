#!/usr/bin/env bash
# release.sh: static programs for Linux as archives with checksums, in dist/.
# The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --dirty)}
epoch=$(git log -1 --format=%ct)
rm -rf dist
for arch in amd64 arm64; do
	name=muster-$version-linux-$arch
	GOOS=linux GOARCH=$arch VERSION=$version scripts/build.sh "dist/$name"
	cp LICENSE README.md CHANGELOG.md "dist/$name/"
	tar -C dist --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=go+u,go-w -cf - "$name" |
		gzip -n >"dist/$name.tar.gz"
	rm -r "dist/$name"
done
(cd dist && sha256sum ./*.tar.gz | tee SHA256SUMS)
