#!/usr/bin/env bash
# agents.sh DIRECTORY: builds the agent for every kind of device, without cgo and
# without the vendor's development kits: static for Linux (a daemon in a system
# image), dynamic for Android (inside an app, where only Go's android target keeps
# to the system calls that apps may make; it needs the system's linker alone).
#
# MUSTER_AGENT_KEY names a file with the Ed25519 key of releases (made by `go run
# ./internal/agent/release/cmd key FILE`): the agents then install updates of this key, and
# the signed programs, which muster agent release takes, are beside them.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
# The same number and key for all: devices install higher numbers of this key alone.
code=$(sed -n 's/^code=//p' android/version.properties)
built=$(sed -n 's/^built=//p' android/version.properties)
key=
if [ -n "${MUSTER_AGENT_KEY-}" ]; then key=$(go run ./internal/agent/release/cmd public "$MUSTER_AGENT_KEY"); fi
mkdir -p "$1"
for target in android/arm64 linux/arm64 linux/amd64; do
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath \
		-ldflags "-s -w -X main.version=$version -X main.code=$code -X main.built=$built -X main.releaseKey=$key" \
		-o "$1/muster-agent-${target/\//-}" ./cmd/muster-agent
	if [ -n "$key" ] && [ "${target%/*}" = linux ]; then
		go run ./internal/agent/release/cmd sign "$MUSTER_AGENT_KEY" "${target/\//-}" "$version" "$code" \
			"$1/muster-agent-${target/\//-}" "$1/muster-agent-${target/\//-}.release"
	fi
done
