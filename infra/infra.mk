# Packaging and deployment of the AWS stack: docs/deploy.md.

STAGE ?= dev
REGION ?= $(or $(AWS_REGION),$(AWS_DEFAULT_REGION),us-east-1)
HOST_ARCH := $(patsubst aarch64,arm64,$(shell uname -m))
# The functions' architecture. With AWS_ENDPOINT_URL (LocalStack), the functions run on this
# machine.
ARCH ?= $(if $(AWS_ENDPOINT_URL),$(HOST_ARCH),arm64)
# Parameters of infra/serverless.yml: PARAMS='retention=90d query-memory=4096'
PARAMS ?=
# Not empty: deploy changed parameters without a question; deploy also what deletes data or
# functions.
YES ?=
ALLOW_DELETION ?=
ifneq ($(AWS_ENDPOINT_URL),)
export AWS_ENDPOINT_URL
endif
# tests/tools/system.sh installs Node.js there if the system has none or an old one.
export PATH := $(CURDIR)/.cache/node/bin:$(PATH)

export AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED := true

NODE_READY := infra/node_modules/.ready

.PHONY: system-package
system-package:
	@tests/tools/system.sh package $(ARCH)

$(NODE_READY): infra/package-lock.json
	@tests/tools/system.sh package
	@echo 'node: installing packaging tools into infra/node_modules'
	@cd infra && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

.PHONY: functions
functions: $(PAGE) | system-package ## Build the functions' bootstraps into dist/<arch>/<program>.zip (ARCH=).
	@GO='$(GO)' VERSION='$(VERSION)' BUILDVCS='$(BUILDVCS)' infra/build.sh $(ARCH)

# It runs before the build of the functions, which takes minutes the first time.
.PHONY: package-check
package-check: $(NODE_READY) | system-package
	@node infra/check.js '$(STAGE)' '$(ARCH)' $(PARAMS)

.PHONY: package
package: package-check functions $(NODE_READY) ## Package the AWS stack offline into dist/<stage>/cloudformation.json (STAGE=, ARCH=, REGION=, PARAMS=).
	@infra/package.sh $(STAGE) $(REGION) $(ARCH) $(PARAMS)

# It also runs before the build: it may ask, or refuse.
.PHONY: deploy-check
deploy-check: $(NODE_READY) | system-package
	@node infra/changes.js $(if $(YES),--yes) $(if $(ALLOW_DELETION),--allow-deletion) '$(STAGE)' '$(REGION)' '$(ARCH)' $(PARAMS)

.PHONY: deploy
deploy: deploy-check functions $(NODE_READY) ## Deploy the AWS stack and print its URLs (STAGE=, ARCH=, REGION=, PARAMS=, YES=, ALLOW_DELETION=, AWS_ENDPOINT_URL=).
	@xargs -0 -a dist/$(STAGE)/parameters infra/package.sh $(STAGE) $(REGION) $(ARCH)
	@xargs -0 -a dist/$(STAGE)/parameters infra/deploy.sh $(STAGE) $(REGION) $(ARCH)

.PHONY: rollback
rollback: $(NODE_READY) ## Give the functions of a stage with canary= the versions of the deployment before, or end a canary (STAGE=, REGION=).
	@node infra/rollback.js '$(STAGE)' '$(REGION)'

.PHONY: remove
remove: $(NODE_READY) ## Remove the AWS stack; its bucket and its queues of writes stay (STAGE=, REGION=).
	@infra/remove.sh $(STAGE) $(REGION)

# tests/infra needs both architectures, because no other test links the foreign one.
.PHONY: infra-programs
infra-programs: build versitygw $(NODE_READY)
	@$(MAKE) functions ARCH='arm64 x86_64'

.PHONY: test-infra
test-infra: $(VENV_READY) infra-programs ## Test the packaging: template, policies, routes, compose files (ARGS= goes to pytest).
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest tests/infra $(ARGS)

# Helm, kubeconform and the types of custom resources have a module of their own: 900 packages that
# only the targets below need.
.PHONY: kubernetes-tools
kubernetes-tools: | system
	@mkdir -p .cache/bin
	@cd tests/kubernetes && $(GO) build -buildvcs=false -ldflags '-s -w' -o ../../.cache/bin/ github.com/yannh/kubeconform/cmd/kubeconform helm.sh/helm/v4/cmd/helm ./customresources

.PHONY: chart-programs
chart-programs: bin/promlake versitygw kubernetes-tools

.PHONY: test-chart
test-chart: $(VENV_READY) chart-programs ## Test the Helm chart: as helm renders it, without a cluster (ARGS= goes to pytest).
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest tests/kubernetes/test_chart.py $(ARGS)

# Kubernetes' API server takes a quarter of an hour to compile the first time, and only this target
# needs it. Debian's etcd is unpacked, not installed.
.PHONY: kubernetes-programs
kubernetes-programs: chart-programs
	@mkdir -p .cache/etcd
	@[ -x .cache/etcd/usr/bin/etcd ] || { cd .cache/etcd && apt-get -qq -o APT::Sandbox::User=root download etcd-server && dpkg-deb -x etcd-server_*.deb .; }
	@cd tests/kubernetes && version=$$($(GO) list -m -f '{{.Version}}' k8s.io/kubernetes) && $(GO) build -buildvcs=false -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$$version" -o ../../.cache/bin/ k8s.io/kubernetes/cmd/kube-apiserver

.PHONY: test-kubernetes
test-kubernetes: $(VENV_READY) kubernetes-programs ## Install the Helm chart in a real API server, and scrape pods that it names (ARGS= goes to pytest).
	PROMLAKE_E2E_PROGRAMS=ready $(VENV)/bin/python -m pytest tests/kubernetes $(ARGS)

# Values of the chart: make manifests VALUES=my.yaml
VALUES ?= deploy/helm/promlake/values.yaml
NAMESPACE ?= metrics

.PHONY: manifests
manifests: kubernetes-tools ## Render the Helm chart into dist/kubernetes.yaml (VALUES=, NAMESPACE=).
	@mkdir -p dist
	@.cache/bin/helm template promlake deploy/helm/promlake --namespace '$(NAMESPACE)' --values '$(VALUES)' >dist/kubernetes.yaml
	@echo 'manifests: dist/kubernetes.yaml'
