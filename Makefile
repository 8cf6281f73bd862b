# `make help` lists the targets. A target installs its dependencies: missing Debian packages
# (tests/tools/system.sh), Python packages into .venv, Go tools (tests/tools/go.mod) through the
# module proxy, peers for tests and benchmarks into .cache.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
# From v3 on, Go fuses multiplications and additions, and its results differ from those of the C
# kernels in the last bit.
export GOAMD64 := v1
# Further build tags: make build TAGS=all_sd
TAGS ?=
comma := ,
# Programs, functions, tests and linters share what was compiled only if all of them trim paths and
# have equal flags and tags; so do checkouts. Nothing that is linked keeps symbols for debuggers,
# and without them the compiler takes a quarter less time. As in Prometheus' releases, names are
# resolved without the C library. Arrow reads JSON with the standard library, because compiling its
# other package takes 18 CPU seconds.
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false -tags=netgo,osusergo,arrow_json_stdlib$(addprefix $(comma),$(TAGS)) $(filter-out -tags=%,$(GOFLAGS))
export PYTHON ?= python3
VERSION ?= $(shell deploy/version.sh)
# Go refuses to stamp a build where git does not know the commit.
BUILDVCS := $(shell git rev-parse --verify -q HEAD >/dev/null 2>&1 && echo auto || echo false)
LDFLAGS := -s -w -X github.com/promlake/promlake/internal/base/telemetry.version=$(VERSION)
# Linux maps a program in pages of 2 MiB, and counts all of each as resident, where file and
# addresses are aligned alike. They are not from this address on: an idle server has 30 MB less.
LDFLAGS += -extldflags=-Wl,-Ttext-segment=0x410000
# The compiler collects no garbage before it has 1 GiB.
GOBUILD = GOGC=off GOMEMLIMIT=1GiB $(GO) build -buildvcs=$(BUILDVCS) -ldflags '$(LDFLAGS)'
# lint vets all packages. mold links DuckDB with half the work of ld, and no test needs debug
# symbols.
GOTEST := -vet=off -ldflags="-w -extldflags=-fuse-ld=mold" -timeout 30m
# Go tools have their own module, so that go.mod lists only modules that the product imports.
GO_TOOL := $(GO) tool -modfile=tests/tools/go.mod

PAGE := web/dist/index.html
VENV := .venv
VENV_READY := $(VENV)/.ready
PYTHON_CODE := client tests infra docs/notebooks
SHELL_CODE = .ci/run $(shell git ls-files --cached --others --exclude-standard -- '*.sh')

STORE ?= file://./data
LISTEN ?= 127.0.0.1:9009
# Additional arguments of pytest, the benchmarks and promlake serve: make e2e ARGS='-k tenants'
ARGS ?=
SOAK ?= 30s
FAULTS ?= 600
# Tests of the whole system wait longer than they compute, so that several files run at once.
E2E_WORKERS ?= 3

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

.PHONY: system
system:
	@tests/tools/system.sh

# uv installs the Python packages with a tenth of the CPU time of pip.
UV := .cache/installer/bin/uv

$(UV): tests/tools/installer.txt | system
	@$(PYTHON) -m venv .cache/installer
	@.cache/installer/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(VENV_READY): tests/tools/requirements.txt $(UV)
	@echo 'venv: installing Python tools into $(VENV)'
	@rm -rf $(VENV)
	@$(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
	@$(UV) pip install --quiet --python $(VENV)/bin/python --require-hashes -r $<
	@touch $@

# Packages come from web/package-lock.json without running their scripts.
web/node_modules/.ready: web/package-lock.json | system
	@echo 'web: installing packages into web/node_modules'
	@cd web && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

$(PAGE): web/node_modules/.ready web/build.mjs web/tsconfig.json $(wildcard web/src/* web/src/*/*) infra/grafana/dashboards/promlake-operations.json
	@echo 'web: building the page into web/dist'
	@cd web && node_modules/.bin/tsc && node build.mjs
	@touch $@

.PHONY: page
page: $(PAGE) ## Build the page that the programs embed.

# On a new machine, the standard library is compiled beside all downloads, and modules beside the
# page.
MODULES := $(if $(wildcard $(PAGE)),,modules)
.PHONY: modules
modules:
	@echo 'go: downloading and compiling modules'
	@$(GOBUILD) net/http html/template database/sql & \
	packages=$$($(GO) list -e -deps -f '{{with .Module}}{{if not .Main}}{{$$.ImportPath}}{{end}}{{end}}' ./cmd/promlake); \
	wait; tests/tools/system.sh && $(GOBUILD) $$packages

# Go decides whether a program is out of date, so make always runs it.
.PHONY: bin/promlake
bin/promlake: $(PAGE) $(MODULES) | system
	$(GOBUILD) -o $@ ./cmd/promlake

.PHONY: build
build: $(PAGE) $(MODULES) | system ## Build bin/promlake, bin/ingest-fn, bin/query-fn and bin/compact-fn.
	$(GOBUILD) -o bin/ ./cmd/promlake ./ingest-fn ./query-fn ./compact-fn

# Architectures of the wheel: WHEEL_ARCH='arm64 x86_64' builds two.
WHEEL_ARCH ?= $(patsubst aarch64,arm64,$(shell uname -m))

.PHONY: wheel
wheel: $(VENV_READY) $(PAGE) ## Build the Python package into dist/*.whl, with the program in it (WHEEL_ARCH=).
	@tests/tools/system.sh package $(WHEEL_ARCH)
	@GO='$(GO)' VERSION='$(VERSION)' BUILDVCS='$(BUILDVCS)' HATCHLING=$(VENV)/bin/hatchling client/build.sh $(WHEEL_ARCH)

# Everything that people install, for both architectures: docs/install.md. Two builds of a commit
# with the same tools are equal.
RELEASE_TOOL = cd deploy/release && GOFLAGS= $(GO) build -trimpath -buildvcs=false -o ../../.cache/bin/release . && cd ../.. && .cache/bin/release
REGISTRY ?= ghcr.io/promlake

.PHONY: release
release: $(VENV_READY) $(PAGE) ## Make archives, packages, images, wheels and functions in dist/release.
	@tests/tools/system.sh release
	@rm -rf dist/release && mkdir -p dist/release .cache/bin
	@$(MAKE) functions ARCH='arm64 x86_64' VERSION='$(VERSION)'
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) OUT=dist/release $(MAKE) wheel WHEEL_ARCH='arm64 x86_64' VERSION='$(VERSION)'
	@mkdir -p dist/completion
	@for shell in bash zsh fish; do dist/$(patsubst aarch64,arm64,$(shell uname -m))/wheel/promlake completion $$shell >dist/completion/$$shell; done
	@$(RELEASE_TOOL) pack '$(VERSION)' $$(git log -1 --format=%ct)

.PHONY: release-push
release-push: ## Push the images of make release to $(REGISTRY)/promlake (REGISTRY=).
	@mkdir -p .cache/bin
	@$(RELEASE_TOOL) push '$(REGISTRY)/promlake' '$(VERSION)'

# It needs root: packages are installed in a layer above this system. Programs for the other
# architecture run in an emulator.
.PHONY: test-release
test-release: release ## Install, start, upgrade and remove what make release makes (ARGS= goes to pytest).
	cd deploy/release && GOFLAGS= $(GO) test ./...
	$(VENV)/bin/python -m pytest tests/release $(ARGS)

.PHONY: vulncheck
vulncheck: ## Find known vulnerabilities that the programs reach (from Go's database).
	GOFLAGS=-tags=netgo,osusergo,arrow_json_stdlib,all_sd $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/promlake ./ingest-fn ./query-fn ./compact-fn

.PHONY: run
run: ## Serve ./data on 127.0.0.1:9009, and scrape it and this machine (STORE=, LISTEN=, ARGS=).
	@echo 'run: building bin/promlake without kubernetes_sd_configs, whose libraries take a minute to compile; make build includes them'
	@$(MAKE) -j 2 bin/promlake TAGS='$(or $(TAGS),no_kubernetes_sd)'
	exec bin/promlake serve --store '$(STORE)' --listen '$(LISTEN)' --demo $(ARGS)

.PHONY: fmt
fmt: $(VENV_READY) ## Format Go and Python code.
	gofmt -w $$(git ls-files --cached --others --exclude-standard -- '*.go')
	$(VENV)/bin/ruff check --fix $(PYTHON_CODE)
	$(VENV)/bin/ruff format $(PYTHON_CODE)

# Staticcheck collects garbage less often with a larger heap: 146 instead of 162 CPU-s, in 1.9 GB.
.PHONY: lint
lint: $(VENV_READY) ## Run gofmt, go vet, staticcheck, ruff and shellcheck.
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard -- '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt: run make fmt for:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	GOGC=400 $(GO_TOOL) staticcheck ./...
	$(VENV)/bin/ruff check $(PYTHON_CODE)
	$(VENV)/bin/ruff format --check $(PYTHON_CODE)
	$(VENV)/bin/shellcheck $(SHELL_CODE)

.PHONY: rie
rie: $(VENV_READY)
	@PYTHON=$(VENV)/bin/python tests/functions/fetch-rie.sh .cache/rie

# The packages whose tests take longest, which begin first: one that began last would run alone.
LONGEST := $(addprefix ./,tests/resource tests/sql tests/bench/all tests/promql internal/app internal/query internal/compact)

.PHONY: test-go
test-go: build rie versitygw | system ## Run the Go tests.
	@tests/tools/system.sh package
	@tests/tools/system.sh shells
	PROMLAKE_PROGRAMS=$(CURDIR)/bin $(GO) test $(GOTEST) -p 3 $(LONGEST) ./...
	$(GO) test $(GOTEST) -tags=netgo,osusergo,arrow_json_stdlib,no_kubernetes_sd ./internal/app/promconfig

# Packages whose tests run goroutines that share memory. The detector finds nothing in others, and
# compiles all that they import once more. In make soak, all run with it.
RACED := $(addprefix ./internal/,access/auth senders/listen base/ask base/memory store/objstore/filestore store/objstore/instrument aws/sqsqueue prom/spool query/fetch query/snapshot)

.PHONY: test-race
test-race: versitygw | system ## Run the tests of concurrent packages with the race detector.
	@tests/tools/system.sh package
	$(GO) test $(GOTEST) -race -p 2 $(RACED)

.PHONY: peers
peers: | system
	@tests/bench/fetch-peers.sh .cache/peers

.PHONY: versitygw
versitygw: | system
	@mkdir -p .cache/bin
	@ln -sf "$$($(GO_TOOL) -n versitygw)" .cache/bin/versitygw

# Real senders have modules of their own, because their dependencies are not Promlake's. Telegraf is
# built with the plugins that the tests configure.
TELEGRAF_TAGS := netgo,osusergo,custom,inputs.mock,outputs.influxdb_v2,outputs.socket_writer,serializers.influx

.PHONY: senders
senders: | system
	@cd tests/collector && $(GO) build -buildvcs=false -ldflags '-s -w' -o ../../.cache/bin/collector .
	@cd tests/telegraf && $(GO) build -buildvcs=false -ldflags '-s -w' -tags $(TELEGRAF_TAGS) -o ../../.cache/bin/telegraf github.com/influxdata/telegraf/cmd/telegraf

.PHONY: e2e-programs
e2e-programs: build versitygw lambda-emulator senders peers

.PHONY: e2e
e2e: $(VENV_READY) e2e-programs ## Run the Python tests of the client and of the whole system (ARGS= goes to pytest).
	@tests/tools/system.sh clients
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest -n $(E2E_WORKERS) --dist loadfile client/tests tests/e2e $(ARGS)

.PHONY: test-web
test-web: bin/promlake ## Test the page in Debian's Chromium (ARGS= goes to node --test).
	@tests/tools/system.sh browser
	@cd web && node --test --test-concurrency=2 $(ARGS) tests/*.test.mjs

# Spark, its Java and Ray are large, and only this target needs them.
ENGINES := .cache/engines

$(ENGINES)/.ready: tests/tools/engines.txt $(VENV_READY)
	@echo 'engines: installing Spark and Ray into $(ENGINES)'
	@rm -rf $(ENGINES)
	@$(UV) pip install --quiet --python $(VENV)/bin/python --no-deps --target $(ENGINES) -r $<
	@touch $@

.PHONY: test-spark
test-spark: $(ENGINES)/.ready bin/promlake ## Read queries and the Iceberg tables with Spark and Ray, from PyPI and Maven Central (ARGS= goes to pytest).
	@tests/tools/system.sh java
	PROMLAKE_E2E_PROGRAMS=ready PROMLAKE_IVY=.cache/ivy PYTHONPATH=$(CURDIR)/$(ENGINES):$(CURDIR)/client PYSPARK_PYTHON=$(CURDIR)/$(VENV)/bin/python \
		$(VENV)/bin/python -m pytest tests/e2e/test_spark.py $(ARGS)

# The test servers of other clouds are large, and only this target needs them.
tests/azurite/node_modules/.ready: tests/azurite/package-lock.json | system
	@echo 'azurite: installing packages into tests/azurite/node_modules'
	@cd tests/azurite && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

.cache/bin/fake-gcs-server: tests/fakegcs/go.mod | system
	@mkdir -p .cache/bin
	@cd tests/fakegcs && $(GO) build -buildvcs=false -ldflags '-s -w' -o ../../$@ github.com/fsouza/fake-gcs-server

.PHONY: test-stores
test-stores: export PROMLAKE_FAKE_GCS_SERVER = $(CURDIR)/.cache/bin/fake-gcs-server
test-stores: export PROMLAKE_AZURITE = $(CURDIR)/tests/azurite/node_modules/.bin/azurite-blob
test-stores: $(VENV_READY) bin/promlake tests/azurite/node_modules/.ready .cache/bin/fake-gcs-server ## Test Google Cloud Storage and Azure Blob Storage on their test servers (ARGS= goes to pytest).
	$(GO) test $(GOTEST) -count=1 ./internal/store/objstore/cloudstore
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest tests/e2e/test_retention.py tests/e2e/test_durability.py -k 'gs or azblob' $(ARGS)

# What several targets of make test need is made before them, so that they do not make it at once.
# Most of the time of the installations is a wait, so they run beside the compiler.
.PHONY: test-programs
test-programs:
	@$(MAKE) -j 3 $(VENV_READY) build rie versitygw peers lambda-emulator $(LOCALSTACK_READY) $(NODE_READY)

# Tests of the stack on LocalStack and end to end have time limits of real servers. With the Go
# tests at once, queries on LocalStack time out; one process that packages and compiles is no
# burden.
STAGES := test-programs lint test-go test-race e2e+test-localstack+functions,test-infra test-web

.PHONY: test
test: ## Run what CI runs: lint, test-go, test-race, e2e beside test-localstack and test-infra, test-web.
	@MAKE='$(MAKE)' tests/tools/stages.sh $(STAGES)

include infra/infra.mk
include infra/localstack/localstack.mk

PROMSQL := internal/query/duck/promsql
PROMSQL_PURE_C = tests/sanitize/driver.c $(PROMSQL)/vec/windowstate.c $(wildcard $(PROMSQL)/kernel/*.c)

# The sanitizers check every access and overflow of the plain C code; 20000 rounds of random series
# take a minute. Then each allocation of 100 rounds fails in turn.
.PHONY: soak-sanitize
soak-sanitize: | system
	@mkdir -p .cache/bin
	@$(CC) -O1 -g -std=c11 -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=all -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o .cache/bin/promsql-driver $(PROMSQL_PURE_C) -lm -lpthread
	@.cache/bin/promsql-driver 20000 $${PROMLAKE_SANITIZE_SEED:-$$RANDOM}
	@.cache/bin/promsql-driver 100 $${PROMLAKE_SANITIZE_SEED:-$$RANDOM} fail

.PHONY: soak
soak: soak-sanitize | system ## Run the long tests: all layouts, long simulations, and every fuzz target for 30 s (SOAK=).
	tests/tools/soak.sh $(SOAK)

.PHONY: soak-faults
soak-faults: versitygw | system ## Check two servers over a faulty store, with kills and jumping clocks, for FAULTS=600 seconds.
	PROMLAKE_FAULTS_SECONDS=$(FAULTS) PROMLAKE_FAULTS_DELETION_DELAY=30s $(GO) test -run '^TestFaults$$' -count=1 -v -timeout 0 ./tests/faults

# The servers of the other version are the test program of tests/faults, as it was there.
OTHER ?= $(shell git describe --tags --abbrev=0 2>/dev/null)

.PHONY: test-upgrade
test-upgrade: versitygw $(PAGE) | system ## Replace servers by those of another version and back over one store, with kills, for FAULTS=600 seconds (OTHER=v0.1.0).
	@[ -n '$(OTHER)' ] || { echo 'test-upgrade: no version is tagged yet; name a commit: make test-upgrade OTHER=COMMIT'; exit 2; }
	@rm -rf .cache/other && mkdir -p .cache/other
	@git archive '$(OTHER)' | tar -x -C .cache/other
	@cp -R web/dist/. .cache/other/web/dist/
	cd .cache/other && $(GO) test -c $(GOTEST) -o ../faults.test ./tests/faults
	PROMLAKE_FAULTS_OTHER_PROGRAM=$(CURDIR)/.cache/faults.test PROMLAKE_FAULTS_SECONDS=$(FAULTS) PROMLAKE_FAULTS_DELETION_DELAY=30s $(GO) test $(GOTEST) -run '^TestFaults$$' -count=1 -v -timeout 0 ./tests/faults

.PHONY: bench
bench: bin/promlake peers versitygw ## Compare Promlake with VictoriaMetrics in everything, in one table and one drawing (ARGS= goes to tests/bench all).
	$(GO) run ./tests/bench all --svg docs/images/benchmarks.svg --history docs/benchmarks/history.csv $(ARGS)

.PHONY: bench-ingest
bench-ingest: bin/promlake ## Compare how Promlake and the fetched peers ingest (ARGS= goes to tests/bench ingest).
	$(GO) run ./tests/bench ingest $(ARGS)

.PHONY: bench-storage
bench-storage: bin/promlake peers ## Compare the size of a day of samples in Promlake and VictoriaMetrics (ARGS= goes to tests/bench storage).
	$(GO) run ./tests/bench storage $(ARGS)

.PHONY: bench-query
bench-query: bin/promlake peers versitygw ## Compare how fast Promlake, VictoriaMetrics and Prometheus answer PromQL (ARGS= goes to tests/bench query).
	$(GO) run ./tests/bench query $(ARGS)

.PHONY: bench-seeds
bench-seeds: bin/promlake peers ## Run public benchmarks, scaled to this machine, on Promlake and VictoriaMetrics (ARGS= goes to tests/bench seeds).
	$(GO) run ./tests/bench seeds $(ARGS)

.PHONY: bench-live
bench-live: bin/promlake peers ## Compare everyday queries of an hour of scrapes that has just arrived (ARGS= goes to tests/bench live).
	$(GO) run ./tests/bench live $(ARGS)

.PHONY: bench-growth
bench-growth: bin/promlake peers ## Compare what samples and queries cost with 100,000 to 5 million series (ARGS= goes to tests/bench growth).
	$(GO) run ./tests/bench growth $(ARGS)

.PHONY: bench-small
bench-small: bin/promlake peers ## Compare a small server with VictoriaMetrics for 75 minutes (ARGS= goes to tests/bench small).
	$(GO) run ./tests/bench small $(ARGS)

.PHONY: bench-dashboard
bench-dashboard: bin/promlake versitygw ## Count the requests to the store of a dashboard (ARGS= goes to tests/bench dashboard).
	$(GO) run ./tests/bench dashboard $(ARGS)

.PHONY: bench-rules
bench-rules: bin/promlake peers ## Compare scraping and rules of Promlake and Prometheus (ARGS= goes to tests/bench rules).
	$(GO) run ./tests/bench rules $(ARGS)

.PHONY: bench-import
bench-import: bin/promlake ## Measure the import of 50 million samples, kill it, and compare it with the source (ARGS= goes to tests/bench import).
	$(GO) run ./tests/bench import --kills 10 --queries 2000 $(ARGS)

.PHONY: bench-web
bench-web: bin/promlake peers ## Measure the page in Chromium, and that of Debian's Prometheus (PEER=no leaves it out).
	@tests/tools/system.sh browser
	@cd web && node tests/bench.mjs

.PHONY: pictures
pictures: bin/promlake notebook-pictures ## Take the pictures of docs/web.md and docs/notebook.md anew.
	@tests/tools/system.sh browser
	@cd web && node tests/pictures.mjs ../docs/images

.PHONY: notebook-pictures
notebook-pictures: bin/promlake $(VENV_READY)
	@PROMLAKE_E2E_PROGRAMS=ready PROMLAKE_PICTURES=docs/images $(VENV)/bin/python -m pytest -q tests/e2e/test_notebook.py

.PHONY: bench-peers
bench-peers: peers ## Fetch Debian's prometheus and victoria-metrics into .cache/peers; nothing is installed or started.

.PHONY: clean
clean: ## Remove everything that was built and fetched; ./data stays.
	rm -rf bin .cache $(VENV) dist infra/node_modules tests/azurite/node_modules web/node_modules web/dist/assets $(PAGE) .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
