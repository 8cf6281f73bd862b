# The stack on LocalStack, on this machine and without Docker: docs/localstack.md.

LOCALSTACK := .cache/localstack
LOCALSTACK_READY := $(LOCALSTACK)/venv/.ready
LOCALSTACK_PYTHON := $(LOCALSTACK)/venv/bin/python
LOCALSTACK_EXECUTOR := $(wildcard infra/localstack/executor/*.toml infra/localstack/executor/promlake_executor/*.py)
LOCALSTACK_PORT ?= 4566
LAMBDA_EMULATOR := .cache/bin/lambda

# The executor is built from a copy, because the build writes files beside the sources.
$(LOCALSTACK_READY): infra/localstack/requirements.txt $(UV) $(LOCALSTACK_EXECUTOR)
	@echo 'localstack: installing into $(LOCALSTACK)/venv'
	@mkdir -p $(LOCALSTACK)
	@$(UV) venv --quiet --allow-existing --python $(PYTHON) $(LOCALSTACK)/venv
	@$(UV) pip sync --quiet --python $(LOCALSTACK_PYTHON) --require-hashes infra/localstack/requirements.txt
	@rm -rf $(LOCALSTACK)/executor
	@cp -R infra/localstack/executor $(LOCALSTACK)/executor
	@$(UV) pip install --quiet --python $(LOCALSTACK_PYTHON) --offline --no-deps --no-build-isolation ./$(LOCALSTACK)/executor
	@touch $@

.PHONY: lambda-emulator
lambda-emulator: | system
	@$(GO) build -buildvcs=false -o $(LAMBDA_EMULATOR) ./infra/localstack/lambda

.PHONY: localstack-ready
localstack-ready: $(LOCALSTACK_READY) lambda-emulator bin/promlake

.PHONY: localstack
localstack: localstack-ready ## Run the AWS stack on this machine, on LocalStack without Docker (LOCALSTACK_PORT=, ARGS=--once).
	@exec $(LOCALSTACK_PYTHON) infra/localstack/up.py --port $(LOCALSTACK_PORT) $(ARGS)

# docker compose; the container that deploys uses the same parameters.
.PHONY: localstack-compose
localstack-compose: | system ## Run the AWS stack with Prometheus and Grafana on LocalStack, with Docker (ARGS= goes to docker compose up).
	@. infra/localstack/compose/parameters.env && $(MAKE) package STAGE=local ARCH=$(HOST_ARCH) PARAMS="$$PARAMS"
	@CGO_ENABLED=0 $(GO) build -buildvcs=false -o $(LOCALSTACK)/lambda ./infra/localstack/lambda
	docker compose -f infra/localstack/compose.yaml up $(ARGS)

.PHONY: test-localstack
test-localstack: $(VENV_READY) localstack-ready peers ## Test the AWS stack on LocalStack, end to end (ARGS= goes to pytest).
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest tests/localstack $(ARGS)
