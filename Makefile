# Each target is one command or one script; `make` lists them.

.PHONY: help demo build check lint app android-rules test conformance prove fuzz mutate bench bench-peers
.PHONY: screenshots golden generate release clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: ## run the demo: emulator, a company and its simulated devices
	go run ./cmd/muster demo

build: ## build the programs into bin/ (static, reproducible)
	scripts/build.sh bin

app: ## build the signed Android app, bin/app/muster-agent.apk (android/README.md)
	android/build.sh bin/app

android-rules: ## compare what Android enforces with the list of the app's tests; ARGS=write writes it
	android/rules.sh $(ARGS)

check: ## check format, layers, texts, vet, linters and dead code
	scripts/check.sh

lint: ## check the layers alone (seconds)
	scripts/layers.sh

test: ## run all tests, most with the race detector; ARGS="./internal/resource -run X" for some
	scripts/test.sh $(ARGS)

conformance: ## hold MCP, OAuth, REST and the emulator against other people's suites and clients
	scripts/conformance.sh $(ARGS)

prove: ## run the long proofs: faults, kills, failovers, upgrades, packages (hours)
	scripts/prove.sh

fuzz: ## run each fuzz target for FUZZTIME (5m); FUZZ=pattern picks some
	scripts/fuzz.sh $(FUZZTIME)

mutate: ## change 60 conditions, one at a time, and count which changes fail a test (half an hour); ARGS="-seed 2" draws others
	scripts/mutate.sh $(ARGS)

bench: ## run the benchmarks; BENCH=pattern picks some
	scripts/with-postgres.sh go test -run '^$$' -bench '$(or $(BENCH),.)' -benchmem -timeout 60m ./...

bench-peers: ## measure Muster beside NanoMDM, PocketBase and mosquitto; ARGS=-quick shows that it works
	scripts/bench-peers.sh $(ARGS)

screenshots: ## take the pictures of docs/screenshots from the demo's data
	scripts/screenshots.sh

golden: ## write the golden files again
	scripts/golden.sh

generate: ## run the code generators
	scripts/generate.sh

release: ## build archives, packages, an image and checksums into dist/ (docs/install.md)
	scripts/release.sh

clean: ## remove what the other targets made
	rm -rf bin dist
