#!/usr/bin/env bash
# agents.sh DIRECTORY: builds the agent for every kind of device, without cgo and
# without the vendor's development kits: static for Linux (a daemon in a system
# image), dynamic for Android (inside an app, where only Go's android target keeps
# to the system calls that apps may make; it needs the system's linker alone).
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
mkdir -p "$1"
for target in android/arm64 linux/arm64 linux/amd64; do
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -ldflags "-s -w -X main.version=$version" \
		-o "$1/muster-agent-${target/\//-}" ./cmd/muster-agent
done
