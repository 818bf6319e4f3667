#!/usr/bin/env bash
# check.sh: what can be said about the sources without running them: format,
# layers, texts, vet, the linters of .golangci.yaml, dead code.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

say "gofmt"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	printf 'not formatted (gofmt -w):\n%s\n' "$unformatted" >&2
	exit 1
fi

say "layers, packages: tools"
scripts/layers.sh
go -C tools test ./layers ./release ./compose ./mutate

say "texts: docs/style.md"
go test ./docs

# With -race, what is compiled here serves the tests as well.
say "go vet"
go vet "${race[@]}" ./...
say "golangci-lint: .golangci.yaml"
go -C tools build -o ../bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
GOFLAGS="${race[*]}" bin/golangci-lint run --allow-parallel-runners ./...
(cd tools && ../bin/golangci-lint run --allow-parallel-runners --config ../.golangci.yaml --enable-only lll ./...)
say "dead code"
scripts/deadcode.sh
