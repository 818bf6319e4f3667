#!/usr/bin/env bash
# app-test.sh: builds the Android app, checks it and runs its tests. Where the JDK or the
# artifacts cannot be had it says so and skips them; with CI=true it fails instead.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
	echo "SKIPPED: the Android app's build, checks and tests: $1" >&2
	[ "${CI-}" != true ] || exit 1
	exit 0
}

for tool in javac mvn apksigner unzip; do
	command -v $tool >/dev/null || skip "there is no $tool"
done
for use in build lint test sdk; do
	android/artifacts.sh $use >/dev/null || skip "the artifacts of android/artifacts.txt cannot be had"
done
out=$(mktemp -d "${TMPDIR:-/tmp}/muster-app-XXXXXX")
trap 'rm -rf "$out"' EXIT
android/test.sh "$out"
