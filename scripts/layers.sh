#!/usr/bin/env bash
# layers.sh: fail if a package imports what its layer may not import (tools/layers).
set -euo pipefail
cd "$(dirname "$0")/.."
go -C tools build -o ../bin/ ./layers
bin/layers
