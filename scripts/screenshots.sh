#!/usr/bin/env bash
# screenshots.sh: pictures of every screen, light and dark, from the demo's
# data, into docs/screenshots. Needs Chromium.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
test_packages
mkdir -p docs/screenshots
MUSTER_SCREENSHOTS=$PWD/docs/screenshots go test -count=1 -run '^TestPages$' ./internal/servertest/browser
