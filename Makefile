# Pizza Mail. `make help` lists the targets.
SHELL   := /bin/bash
SHARED  ?= ../shared
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
SOAK    ?= 1h
FUZZ    ?= 20s
SESSIONS ?= 1m

# The race detector needs a C compiler; the product does not.
ifneq ($(shell command -v $$(go env CC) 2>/dev/null),)
RACE := -race
else
RACE :=
endif

export SHARED := $(abspath $(SHARED))
.PHONY: help setup build demo test race fuzz sessions lint e2e e2e-imaptest imaptest-program bench bench-imap bench-langgraph check soak

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1\t\2/' | expand -t 19

setup: ## fetch the Go modules (make demo and make test do it by themselves)
	go mod download

build: ## build ./pizza, one static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o pizza ./cmd/pizza

demo: build ## show a task going round: mail, approval, result
	./pizza demo

test: ## all fast tests, with the race detector where a C compiler is installed
ifeq ($(RACE),)
	@echo 'no C compiler found: tests run without the race detector'
endif
	CGO_ENABLED=$(if $(RACE),1,0) go test $(RACE) -shuffle=on ./...

race: ## the fast tests; fails without a C compiler
	@test -n '$(RACE)' || { echo 'make race needs a C compiler (apt-get install gcc libc6-dev)'; exit 1; }
	CGO_ENABLED=1 go test -race -shuffle=on ./...

lint: ## gofmt, vet, staticcheck, and a build for every system
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	go vet ./... && go vet -tags 'e2e bench soak' ./...
	go tool staticcheck ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build -o /dev/null ./cmd/pizza
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -o /dev/null ./cmd/pizza

e2e: build ## real mail programs and real kill -9 against ./pizza
	go test -tags e2e -count=1 -timeout 12m -v ./internal/e2e/...

# IMAPTEST is a path, or a name to look for on PATH. The scripts lie beside the program
# where it was built. STRESS is how long each mode runs.
IMAPTEST_PATH := $(if $(IMAPTEST),$(abspath $(shell command -v '$(IMAPTEST)')))
TESTS  ?= $(dir $(IMAPTEST_PATH))tests
STRESS ?= 1m
e2e-imaptest: $(if $(IMAPTEST),imaptest-program build) ## the public suite imaptest: IMAPTEST=<its program> TESTS=<its scripts> STRESS=1m
ifeq ($(IMAPTEST),)
	@echo 'imaptest is skipped: give IMAPTEST=<its program>, and TESTS=<its scripts> if they do not lie beside it'
else
	IMAPTEST='$(IMAPTEST_PATH)' TESTS='$(abspath $(TESTS))' STRESS=$(STRESS) go test -tags e2e -count=1 -timeout 60m -run '^TestImaptest' -v ./internal/e2e/
endif

imaptest-program:
	@test -f '$(IMAPTEST_PATH)' || { echo 'IMAPTEST=$(IMAPTEST): there is no such program that can be run, as a path or on PATH'; exit 1; }
	@test -d '$(TESTS)' || { echo 'TESTS=$(TESTS): there is no such folder; name the one with the scripts of imaptest'; exit 1; }

bench: build ## print figures: start, latency, submissions, steps, waiting tasks, memory
	go test -tags bench -count=1 -timeout 20m -v -run '^TestBench' ./internal/e2e/...

bench-imap: build ## compare with Dovecot, by turns (as root): BENCH_N=10000 messages, BENCH_ROUNDS=3; and with the floor of the disk
	go test -run '^$$' -bench '^BenchmarkAppend' -benchtime 500x ./imapserver
	go test -tags bench -count=1 -timeout 60m -v -run '^TestIMAPBench$$' ./internal/e2e/

bench-langgraph: build ## compare the durable run with LangGraph, by turns: BENCH_ROUNDS=3 BENCH_WAITING=100000 (needs ../shared, node, npm)
	go test -tags bench -count=1 -timeout 90m -v -run '^TestLangGraph$$' ./internal/e2e/langgraph

check: lint test sessions e2e ## what CI runs

fuzz: ## FUZZ=20s of each fuzz target
	./internal/testkit/fuzz.sh $(FUZZ)

sessions: ## SESSIONS=1m of anything in every state of IMAP, and of random commands against a model
	go test ./imapserver -run '^$$' -fuzz '^FuzzSession$$' -fuzztime $(SESSIONS) </dev/null
	PIZZA_MODEL_TIME=$(SESSIONS) go test -count=1 -timeout 0 -run '^TestModel$$' ./imapserver

soak: build ## SOAK=1h of fuzzing per target, random sessions against a model, simulated tasks, thousands of kills
	./internal/testkit/fuzz.sh $(SOAK)
	PIZZA_MODEL_TIME=$(SOAK) go test -count=1 -timeout 0 -run '^TestModel$$' ./imapserver
	PIZZA_SIM_TIME=$(SOAK) go test -count=1 -timeout 0 -run '^TestSim' ./agent
	go test -tags soak -count=1 -timeout 6h -v ./internal/e2e/...
