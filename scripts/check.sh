#!/usr/bin/env bash
# check.sh: what can be said about the sources without running them: format,
# vet, staticcheck, the rules of the house, dead code.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

say "gofmt"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	printf 'not formatted (gofmt -w):\n%s\n' "$unformatted" >&2
	exit 1
fi

say "rules of the house"
go build -o bin/house ./internal/house/cmd/house
bin/house

say "texts: docs/style.md"
go test ./docs

# With -race, what is compiled here serves the tests as well.
say "go vet"
go vet "${race[@]}" ./...
say "staticcheck"
go -C tools build -o ../bin/ honnef.co/go/tools/cmd/staticcheck
GOFLAGS="${race[*]}" bin/staticcheck ./...
say "dead code"
scripts/deadcode.sh
