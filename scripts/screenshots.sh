#!/usr/bin/env bash
# screenshots.sh: pictures of every screen from the demo's data, into
# docs/screenshots; pages in the dark theme too, but not their states (page-state).
# Needs Chromium and ImageMagick.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/packages.sh
. scripts/packages.sh
test_packages
command -v convert >/dev/null || debian_install imagemagick
taken=$(mktemp -d)
trap 'rm -rf "$taken"' EXIT
MUSTER_SCREENSHOTS=$taken go test -count=1 -run '^TestPages$' ./test/browser
mkdir -p docs/screenshots
rm -f docs/screenshots/*.webp
# Two dozen colors and no loss keep text sharp, and a picture at about 20 kB: all of
# them may take 2 MB, which a test checks.
for picture in "$taken"/*.png; do
	if [[ $(basename "$picture") == *-*-dark.png ]]; then continue; fi
	convert "$picture" +dither -colors 24 -define webp:lossless=true -define webp:method=6 \
		"docs/screenshots/$(basename "$picture" .png).webp"
done
