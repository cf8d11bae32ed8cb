# Waybill. `make` lists what there is. Everything works with only HOME and PATH
# in the environment, with or without a terminal, as root and as anybody else.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Somebody's own flags and workspaces must not decide what is tested here.
export GOFLAGS :=
export GOWORK := off

BIN := .waybill/bin

# Go stamps the version from git into the binary. Where git has nothing to say
# (an archive, a checkout of another user, no commit yet) the build must not
# fail over it.
BUILDVCS := $(if $(shell git rev-parse --verify -q HEAD 2>/dev/null),true,false)

# The race detector links with a C compiler; a machine without one still tests.
RACE := $(if $(shell command -v gcc || command -v clang),-race)

# Each package brings servers of its own: as many at once as there are cores, and
# no more than four, beyond which they only take time from each other.
PARALLEL := $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n < 4 ? n : 4)))
TESTFLAGS := $(RACE) -p $(PARALLEL) -timeout 20m

.PHONY: help
help: ## list the targets
	@echo "Waybill: make <target>"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ARGS are for `waybill dev`, for example: make run ARGS='--quiet --ui-port 18233'
.PHONY: run
run: temporal mariadb build ## start a complete demo system (first time about 5 minutes), Ctrl-C stops it
	@exec bin/waybill dev $(ARGS)

.PHONY: build
build: go ## build bin/waybill
	@mkdir -p bin; [ -x bin/waybill ] || echo "building waybill (about a minute, once)"
	@go build -v -buildvcs=$(BUILDVCS) -o bin/waybill ./cmd/waybill 2>&1 | tools/progress waybill

.PHONY: go
go:
	@tools/need-go

.PHONY: test
test: static temporal mariadb faketime ## everything CI runs: check, and the tests with real servers
	@$(no-race)
	go test $(TESTFLAGS) $$(go list ./... | grep -v -e '/test$$' -e '/test/faults$$')
	go test -count=1 $(RACE) -timeout 45m ./test

.PHONY: check
check: static ## format, lint, floors, workflow determinism, and the tests that need no servers
	@$(no-race)
	go test -short $(TESTFLAGS) ./...

# What both have in common: all that needs no running test.
.PHONY: static
static: lint-tools
	@echo "gofmt";         out=$$(find . -name '*.go' -not -path './.waybill/*' -print0 | xargs -0 gofmt -l); \
	  if [ -n "$$out" ]; then echo "not formatted (gofmt -w):"; echo "$$out"; exit 1; fi
	@echo "go vet";        go vet ./...
	@echo "golangci-lint"; $(BIN)/golangci-lint run ./...
	@echo "floors";        go test .
	@echo "deploy";        go -C tools/deploy test -count=1 ./...
	@echo "workflowcheck"; $(BIN)/workflowcheck -config tools/workflowcheck.yaml ./workflows/...
	@echo "replay";        go test -run 'Replay' ./workflows/...

no-race = $(if $(RACE),true,echo "no C compiler found: testing without the race detector")

# SEEDS=n and FROM=n choose the seeds, LANES=n how many run at once, each on
# servers of its own.
SEEDS ?= 20
FROM ?= 0
LANES ?= 3
.PHONY: faults
faults: temporal mariadb faketime ## the fault campaign: SEEDS=20 seeds, then the planted bugs (about 25 minutes)
	go test -timeout 24h -v ./test/faults -run No -seeds $(SEEDS) -from $(FROM) -lanes $(LANES)
	go test -timeout 24h -v ./test/faults -run Planted -bugs all

.PHONY: bench
bench: temporal mariadb build ## deliveries/s beside empty workflows, latency, idle cost, cost by depth (about 20 minutes)
	@go run ./test/bench $(BENCHFLAGS)

.PHONY: bench-rates
bench-rates: temporal mariadb build ## only deliveries/s and latency (about 2 minutes)
	@go run ./test/bench -parts rates,latency $(BENCHFLAGS)

.PHONY: bench-depth
bench-depth: temporal mariadb build ## cost of a delivery up to 100,000 queued rows and 2,000 hooks (about 15 minutes)
	@go run ./test/bench -parts depth -depths 1000x10,10000x10,100000x10,10000x1,10000x100,10000x2000 $(BENCHFLAGS)

.PHONY: bench-flood
bench-flood: temporal mariadb build ## 100,000 queued rows, a tenth failing: memory and open workflows (about 45 minutes)
	@go run ./test/bench -parts flood -flood 100000 $(BENCHFLAGS)

.PHONY: bench-packages
bench-packages: ## the packages' own benchmarks
	go test -run '^$$' -bench . -benchmem -timeout 60m ./...

.PHONY: tools
tools: temporal lint-tools ## build Temporal, golangci-lint and workflowcheck into .waybill/bin

.PHONY: temporal
temporal: go
	@if [ -n "$${WAYBILL_TEMPORAL_BIN:-}" ]; then exit 0; fi; \
	tools/build temporal tools github.com/temporalio/cli/cmd/temporal \
	  "about 5 minutes on two cores, once; later builds come from Go's cache"

.PHONY: lint-tools
lint-tools: go
	@tools/build golangci-lint tools/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "about 2 minutes, once"
	@tools/build workflowcheck tools/lint go.temporal.io/sdk/contrib/tools/workflowcheck

.PHONY: mariadb
mariadb:
	@tools/need-mariadb

.PHONY: faketime
faketime:
	@tools/need-faketime

.PHONY: clean
clean: ## remove bin/ (tools and demo data stay)
	rm -rf bin

# A running demo keeps its data: it holds these locks.
.PHONY: clean-dev
clean-dev: ## remove the demo's data: its database, its Temporal, its keys
	@for lock in $$(find .waybill -name '*.lock' 2>/dev/null); do \
	  if command -v flock >/dev/null && ! flock -n $$lock true 2>/dev/null; then \
	    if [ -r $$lock ]; then echo "the demo is running (process $$(cat $$lock)); stop it first" >&2; \
	    else echo "$$lock belongs to another user; run make clean-dev as that user" >&2; fi; exit 1; fi; done
	@if [ -d .waybill ]; then find .waybill -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf {} +; fi
