#!/usr/bin/env bash
# build.sh DIRECTORY: builds the programs, static and reproducible, for GOOS and
# GOARCH (this machine's by default), and in DIRECTORY/devices the agent for every
# kind of device.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
mkdir -p "$1"
CGO_ENABLED=0 go build -trimpath ${TAGS:+-tags "$TAGS"} -ldflags "-s -w -X main.version=$version" -o "$1/" ./cmd/...
VERSION=$version scripts/agents.sh "$1/devices"
