#!/usr/bin/env bash
# mutate.sh [-seed N] [-count N] [-from N] [-match PATTERN] [-own] [-list]: change one condition at a time, and
# count which changes the tests notice (tools/mutate). Takes about half an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
go -C tools build -o ../bin/ ./mutate
scripts/with-postgres.sh bin/mutate "$@"
