# Everything that CI does, it does through these targets. make help lists them.

GO ?= go
# One line for each package that has ended, then what has failed, and how. VERBOSE=1 names each test.
GOTESTSUM = gotest.tools/gotestsum@v1.13.0
# make lint is a step of each command, so that go test need not repeat a part of it. Without what debuggers need, to link a test takes 0.9 s of
# processor time instead of 1.3 s, and to compile all packages with their tests 65 s instead of 75 s. A test that builds programs inherits
# GOFLAGS, and finds the same packages in the cache. With -trimpath so does each clone: packages are the same in all directories.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath -gcflags=github.com/holdfast-go/holdfast/...=-dwarf=false
TESTS = $(GO) run $(GOTESTSUM) --format $(if $(VERBOSE),testname,pkgname) --hide-summary skipped -- -vet=off -ldflags=-w
# Targets in a row; those joined by + run side by side.
STEPS = MAKE="$(MAKE)" bash tools/steps.sh
# Analyses and simulations allocate much and keep little. Without collections up to a gigabyte, make lint takes 56 s of processor time in a
# new clone on a busy machine, and 66 s with them.
SPARSE = GOGC=off GOMEMLIMIT=1GiB
# What has no time to keep runs in CI beside what has.
NICE = nice -n 10

.PHONY: help check test ci night redis compile fmt lint unit sim real full full-real full-virtual full-around full-topology full-bugs explore modules stress chaos safety simulate soak topology demo examples services contrib contrib-tag platforms bench bench-quick bench-once bench-test browser screenshots fuzz interop journeys servers servers-short differences holes

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: ## after each change, in about a minute: format, vet, lint, and the tests that need no server
	@$(STEPS) fmt lint unit

test: redis ## what README says, in two to four minutes on two cores: the same, and tests on real servers; it installs redis-server if it is missing
	@$(STEPS) fmt lint compile unit,sim+real

ci: ## all that must pass before anything lands
	@.ci/run

night: redis ## hours of random worlds, planted bugs, chaos, soak, fuzzing and other servers: make night HOURS=8
	@$(STEPS) full-real full-around night-virtual night-worlds night-chaos night-fuzz stress soak topology differences servers contrib bench-once

redis: ## install redis-server with the system's package manager, if it is missing
	@sh tools/install-redis.sh

compile: ## all packages and tests, once: steps that run side by side would each compile what they have in common
	@$(SPARSE) $(GO) list -export -test -deps ./... >/dev/null

fmt: ## fail if a file is not formatted
	@files=$$(gofmt -l .) || exit 1; if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi

lint: ## go vet and staticcheck (honnef.co/go/tools) in one pass; in another module: make lint IN=bench
	@$(SPARSE) $(GO) -C bench/vet run . $(CURDIR)/$(IN) ./...

# The tests of locks and of what documents say: in fake time with -short, as far as they can, and on real servers without.
LOCKS = . $(addprefix ./internal/,docs engine $(addprefix locktest/,election faults queue semaphore several state telemetry))

# The packages whose tests need no server, and all others but those with a target of their own.
PURE = ./debug ./scripts ./tools/figures $(addprefix ./internal/,journal lock protocol pubsub renewal validity voting wire)
OTHERS = $$($(GO) list ./... | $(call WITHOUT,$(LOCKS) $(PURE) ./internal/explore ./internal/interop ./internal/sim))
# Those beside LOCKS that the race detector is of use for. The examples' stage starts programs that are built without it.
# internal/topology has a target of its own. The tests of the command start it hundreds of times, which takes minutes with the race
# detector; internal/supervisor, which has its goroutines, is among these. What internal/vredis and internal/sim run takes turns.
RACED = $$($(GO) list ./... | $(call WITHOUT,$(LOCKS) ./cmd/holdfast ./internal/explore ./internal/interop ./internal/sim ./internal/topology \
	./internal/vredis ./examples/.* ./scripts ./tools/figures ./internal/protocol ./internal/validity ./internal/voting ./internal/wire))
WITHOUT = grep -v -x $(patsubst .%,-e 'github.com/holdfast-go/holdfast%',$(1))

# Tests of texts, and those and what runs in fake time as well.
TEXTS = ^Test(Docs|Safety|Scripts|Imports|Files)_
NOTREAL = $(TEXTS)|^TestVirtual_

# What make test leaves to CI: long runs of chaos and its planted bugs, fail-overs, and the suite over a cluster's client.
LONG = $(BUGS)|^TestSoak_|^TestMutexInCluster$$|UnderLoad$$|_KilledMaster$$
BUGS = ^TestChaos_FindsPlantedBugs$$

unit: ## the tests that need no server: the suite and the simulation in fake time, and what is pure
	@$(SPARSE) $(TESTS) -short -timeout 5m $(LOCKS) ./internal/sim ./internal/vredis $(PURE)

sim: ## the simulation: other worlds than in unit, and the bugs planted there
	@$(SPARSE) $(TESTS) -timeout 10m -skip '^TestWorlds_OfCrowds$$' ./internal/sim

real: redis ## on real servers, what needs them, and of the rest some of each; tests mostly wait, so more run at a time than there are cores, and those that take longest begin
	@GOGC=400 HOLDFAST_TEST_QUICK=1 $(TESTS) -shuffle=on -p 3 -parallel 16 -timeout 10m -skip '$(NOTREAL)|$(LONG)' ./internal/topology ./cmd/holdfast $(LOCKS) $(OTHERS)

full: ## what make test leaves out: each kind and mode on real servers, long tests, and all with the race detector; CI runs a part of it
	@$(STEPS) full-real full-around full-topology full-bugs full-virtual explore

full-real: redis # without internal/docs, which starts no goroutines that the others do not start
	@$(TESTS) -race -shuffle=on -parallel $(if $(HOLDFAST_TEST_QUICK),16,8) -timeout 20m -skip '$(NOTREAL)|^TestCost_' $(filter-out ./internal/docs,$(LOCKS))

full-virtual: # one mode: the race detector makes a run take eight times as long. CI leaves it out: full-real has the same with it, on real servers
	@$(TESTS) -short -race -shuffle=on -parallel 4 -timeout 20m -run '^Test' -skip '/^(confirmed|unsliced)$$|$(TEXTS)' $(LOCKS)

full-around: redis
	@$(TESTS) -race -shuffle=on -p 2 -parallel 6 -timeout 20m -skip '$(BUGS)' $(RACED)

full-topology: redis # what make test leaves out
	@$(TESTS) -race -shuffle=on -parallel 8 -timeout 20m -run '$(LONG)' ./internal/topology

full-bugs: redis # without the race detector, which does not find them
	@$(TESTS) -shuffle=on -parallel 8 -timeout 20m -run '$(BUGS)' ./internal/chaos

explore: ## all states of small worlds of the real code, walks through large ones, and the bugs planted there; with one more fault it takes hours: make explore ARGS=-deep
	@$(SPARSE) $(NICE) $(TESTS) -timeout 24h ./internal/explore $(if $(ARGS),-args $(ARGS),$(if $(HOLDFAST_TEST_QUICK),,./internal/voting))

stress: redis ## the tests again and again: make stress COUNT=20
	$(GO) test -race -shuffle=on -parallel 6 -count=$(or $(COUNT),5) -timeout 24h . ./internal/...

chaos: redis ## faults of all kinds and judges for a minute: make chaos CHAOS_ARGS='-duration 10m -seed 7'
	$(GO) test -race -count=1 -v -timeout 24h ./internal/chaos -run '^TestChaos$$' -args -duration 60s $(CHAOS_ARGS)

safety: redis ## a minute of chaos, bugs planted there, and all tests of promises; their figures go into docs/internals/VERIFICATION.md
	@{ $(GO) test -json -count=1 -timeout 30m ./internal/chaos -skip '^TestSoak_' -args -duration 60s -update; \
	  $(GO) test -json -count=1 -timeout 30m ./internal/chaos -run '^TestSoak_'; \
	  $(GO) test -json -count=1 -p 1 -parallel 6 -timeout 30m $$($(GO) list ./... | grep -v -e /internal/chaos -e /internal/interop); \
	} | $(GO) run ./tools/figures docs/internals/VERIFICATION.md

simulate: ## worlds in fake time, those of processes that stand still, and all planted bugs: make simulate SEEDS=20000
	$(GO) test -count=1 -v -timeout 24h ./internal/sim -run '^TestWorlds$$' -args -seed $(or $(SEED),1) -seeds $(or $(SEEDS),2000)
	$(GO) test -count=1 -v -timeout 24h ./internal/sim -run LateTimers -args -seed $(or $(SEED),1) -seeds $$(($(or $(SEEDS),2000) / 5))
	$(GO) test -count=1 -timeout 1h ./internal/sim -run '^TestMutants_' -args -mutants all

soak: redis ## 100,000 lock and cancel cycles and 1,000,000 names of each kind leave nothing behind; the figures go into docs/internals/VERIFICATION.md
	$(GO) test -count=1 -v -timeout 2h ./internal/chaos -run '^TestSoak_' -args -cycles 100000 -names 1000000 -update $(SOAK_ARGS)

topology: redis ## fail-overs and moving slots, 20 rounds of each; their results go into docs/OPERATIONS.md: make topology ROUNDS=3
	$(GO) test -count=1 -v -parallel 4 -timeout 2h ./internal/topology -run '^(TestSentinel_KilledMaster|Test\w+UnderLoad|TestCluster_KilledMaster)$$' -args -rounds $(or $(ROUNDS),20) -update

interop: redis ## share locks with real Redisson, in JVMs; HOLDFAST_INTEROP=require fails without a JDK and Maven
	@if command -v java >/dev/null && command -v mvn >/dev/null; then \
	  $(MAKE) --no-print-directory $(REDISSON_PEERS) && HOLDFAST_INTEROP=require $(GO) test -vet=off -ldflags=-w -count=1 -parallel 16 -timeout 1h ./internal/interop; \
	else \
	  echo "interop: skipped: it needs a JDK and Maven"; test "$$HOLDFAST_INTEROP" != require; \
	fi

# One jar per line of Redisson; libraries come from the Maven registry, once.
REDISSON_PEERS = interop/target/current/redisson-peer.jar interop/target/old/redisson-peer.jar

$(REDISSON_PEERS): interop/target/%/redisson-peer.jar: interop/pom.xml $(shell find interop/src -name '*.java')
	cd interop && mvn -q -B -P$* package

# The packages with functions that begin with a word, so that the tests of others need not be linked.
WITH = $$(grep -rl '^func $(1)' --include='*_test.go' . | grep -v -e '^./bench/' -e '^./examples/' | xargs -n 1 dirname | sort -u)

fuzz: ## each fuzz target so many times: make fuzz FUZZTIME=20000x; with a time, 1m, Go reports one that it had to stop as failed
	@set -e; for p in $(call WITH,Fuzz); do \
	  for f in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$p/*_test.go); do \
	    echo "$$p $$f"; $(NICE) $(GO) test -vet=off -run '^$$' -fuzz "^$$f\$$" -fuzzminimizetime 20x -fuzztime $(or $(FUZZTIME),3000x) $$p; \
	  done; \
	done

journeys: ## how many files of the library a lock passes; the figures go into docs/internals/ARCHITECTURE.md
	$(GO) run ./tools/journeys docs/internals/ARCHITECTURE.md

demo: ## the flash sale, on an embedded server
	$(GO) run ./cmd/holdfast demo

examples: services ## each program of examples/, on the embedded server; of those that are modules of their own, the tests
	@set -e; for e in examples/*/recipe.go; do e=$$(basename $$(dirname "$$e")); echo "--- $$e"; $(GO) run ./examples/stage "$$e"; done

services: ## the tests of the examples that are modules of their own
	@set -e; for m in examples/*/go.mod; do m=$$(dirname "$$m"); echo "--- $$m"; (cd "$$m" && $(NICE) $(GO) test -vet=off ./...); done

contrib: redis ## the tests of the adapters in contrib/, with the oldest version of each library that has the interface, and with the newest
	@set -e; for m in contrib/*/; do for v in go $(if $(HOLDFAST_TEST_QUICK),,newest); do echo "--- $$m$$v.mod"; $(NICE) $(GO) -C "$$m" test -vet=off -modfile=$$v.mod ./...; done; done

contrib-tag: ## what must hold before an adapter gets a tag: make contrib-tag NAME=gocron
	@if grep -n -e '^replace' -e 'holdfast-go/holdfast v0\.0\.0-' contrib/$(NAME)/go.mod; then echo "contrib/$(NAME)/go.mod must require a release of the library: see CONTRIBUTING"; false; else test $$? = 1; fi

holes: ## known holes of Go's standard library and of modules, as far as this code reaches them; it needs vuln.go.dev
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

platforms: ## Windows can have all of it, as code for 32 bits; that macOS can have the command is checked with a release
	@$(SPARSE) $(NICE) $(GO) -C bench/vet run ./platform $(CURDIR) windows/386 ./...

servers: ## the tests on Valkey 9.1, Redis 8.2 and Redis 6.2: make servers SERVERS=valkey-9.1.2
	@if command -v java >/dev/null && command -v mvn >/dev/null; then \
	  $(MAKE) --no-print-directory $(REDISSON_PEERS); \
	else \
	  echo "servers: without interop, which needs a JDK and Maven"; \
	fi
	@sh tools/servers.sh all $(SERVERS)

servers-short: ## a part of them on Valkey 9.1 and Redis 8.2; HOLDFAST_SERVERS=require fails where they cannot be fetched
	@sh tools/servers.sh short valkey-9.1.2 $(if $(HOLDFAST_TEST_QUICK),,redis-8.2.3)

differences: redis ## the tests' own Redis against real ones, by random commands and states: make differences LISTS=100000 STATES=1000 SEED=7
	@LISTS=$(LISTS) STATES=$(STATES) SEED=$(SEED) sh tools/servers.sh differences $(SERVERS)

.PHONY: night-virtual night-worlds night-chaos night-fuzz
HOURS ?= 8

night-virtual: # each mode
	@$(TESTS) -race -parallel 4 -timeout 1h -run '^TestVirtual_' .

night-worlds: # a world takes about a tenth of a second
	@$(MAKE) --no-print-directory simulate SEED=$$(date +%s) SEEDS=$$(($(HOURS) * 10000))
	@$(MAKE) --no-print-directory explore ARGS="-walks $$(($(HOURS) * 1000)) -seed $$(date +%s)"
	@$(TESTS) ./internal/voting

night-chaos:
	@$(MAKE) --no-print-directory chaos CHAOS_ARGS="-duration $$(($(HOURS) * 8))m"

night-fuzz:
	@$(MAKE) --no-print-directory fuzz FUZZTIME=100000x

bench: redis ## the comparison with other libraries, in an hour; writes bench/results and the figures of README and docs/PERFORMANCE.md
	cd bench && $(GO) run ./cmd/report -readme ../README.md -page ../docs/PERFORMANCE.md

bench-quick: redis ## the same in four minutes, rougher, to the terminal only
	cd bench && $(GO) run ./cmd/report -quick -dir ''

bench-once: redis ## every benchmark once, so that none rots
	cd bench && HOLDFAST_TEST_QUICK=1 HOLDFAST_BENCH_WINDOW=50ms $(NICE) $(GO) test -vet=off -run '^$$' -bench . -benchtime=1x ./...

modules: ## vet and staticcheck in the modules beside the root: bench/, those in it, and those in contrib/ and examples/
	@set -e; for m in $$(find bench contrib examples -name go.mod | sort); do m=$$(dirname "$$m"); echo "--- $$m"; \
	  $(NICE) $(MAKE) --no-print-directory lint IN="$$m"; \
	done

bench-test: redis ## the tests of bench/; the programs of docs/MIGRATING.md, all of the API on miniredis, and bench/vet
	cd bench && $(GO) test -vet=off -p 1 -parallel 8 ./...
	cd bench/migrating && $(GO) test -vet=off ./...
	cd bench/miniredis && $(GO) test -vet=off ./...
	cd bench/vet && $(GO) test -vet=off ./...

browser: ## the debug page in a real browser, wide and narrow, light and dark, by keyboard alone; HOLDFAST_BROWSER=require fails where no browser can be installed
	@if sh tools/install-browser.sh; then \
	  cd bench/browser && $(NICE) $(GO) test -vet=off -count=1 -timeout 10m . $(BROWSER_ARGS); \
	else \
	  echo "browser: NOT TESTED: chromium cannot be installed here"; test "$$HOLDFAST_BROWSER" != require; \
	fi

screenshots: ## write the pictures of docs/OPERATIONS.md anew; needs pngquant, which makes them small
	@HOLDFAST_BROWSER=require $(MAKE) --no-print-directory browser BROWSER_ARGS='-args -screenshots $(CURDIR)/docs/screenshots'
	@pngquant --force --strip --ext .png docs/screenshots/*.png
