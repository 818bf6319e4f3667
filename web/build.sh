#!/usr/bin/env bash
# Builds the stylesheet and collects fonts, scripts and outlines into the
# program's own files. Run after a change of a template's classes; the output
# is committed.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p ../test/browser/testdata
out=../internal/surface/web/static
# npm writes the second file when it has installed what the first one names.
[ package-lock.json -ot node_modules/.package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund
npx tailwindcss --input input.css --output "$out/app.css" --minify
cp node_modules/@fontsource-variable/inter/files/inter-latin-wght-normal.woff2 "$out/inter.woff2"
cp node_modules/htmx.org/dist/htmx.min.js "$out/htmx.js"
node world.mjs "$out/world.svg"
node cities.mjs ../internal/surface/portal/geo/cities.tsv
node confusables.mjs ../internal/policy/confusables.txt
node icons.mjs "$out/icons.svg"
cp node_modules/axe-core/axe.min.js ../test/browser/testdata/axe.min.js
