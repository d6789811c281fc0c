# Photon. `make` builds build/photon; `make help` lists the rest.
#   SAN=address,undefined | SAN=thread   build with sanitizers, in a folder of its own
#   HOSTILE=1                            build with -DPHOTON_HOSTILE, in a folder of its own
#   LTO=                                 link fast; a static route then costs a third more user CPU
APP      ?= apps/hello
PREFIX   ?= /usr/local
SECONDS  ?= 20
CC       := $(if $(filter default,$(origin CC)),gcc,$(CC))
OPT      ?= $(if $(SAN),-O1,-O2)
LTO      ?= $(if $(SAN),,-flto=auto)

# On every processor, each recipe's output in one piece (but at once where a + stands before it).
ifeq ($(MAKELEVEL),0)
JOBS      := $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
MAKEFLAGS += $(JOBS) -Otarget --no-print-directory
endif

.PHONY: all run test deps ci clean bench fuzz lint format install help
all:

include server/build.mk

all: $B/photon

# The build runs as a second make, which sees what `deps` has just installed.
run:
	+@server/tools/deps build
	@$(MAKE) $B/photon
	+@exec $B/photon serve $(APP) $(ARGS)
deps:
	+@server/tools/deps build

# The whole suite: busted inside the server's own runtime, ours and every app's specs.
test:
	+@server/tools/deps build test
	@$(MAKE) $B/photon $(TEST_LIB) $(PROGRAMS)
	+@server/tools/suite $B spec $(sort $(wildcard apps/*/spec))

ci:
	+@server/tools/deps build test ci
	@$(MAKE) $B/photon
	@$(MAKE) test
	@$(MAKE) lint
	@$(MAKE) test SAN=address,undefined
	@$(MAKE) fuzz SECONDS=15

bench:
	+@server/tools/deps build bench
	@$(MAKE) $B/photon $(BENCHES)
	+@bench/run $B $(PARTS)

lint:
	+@server/tools/deps lint
	@luacheck --quiet $(LUA_ALL)
	@clang-format --dry-run -Werror $(C_ALL)
	@cppcheck --quiet --error-exitcode=1 --std=c11 --inline-suppr --suppressions-list=.cppcheck \
	    --enable=warning,performance,portability -Iserver server
format:
	+@server/tools/deps lint
	@clang-format -i $(C_ALL)

# Each fuzz target with the pure floors, by clang's libFuzzer, from its seeds in spec/fuzz/corpus/NAME/.
fuzz:
	+@server/tools/deps build fuzz
	@$(MAKE) $(FUZZERS)
	+@for f in $(FUZZERS); do server/tools/fuzz $$f $(SECONDS) || exit 1; done

install: $B/photon
	install -D -m 755 $B/photon $(DESTDIR)$(PREFIX)/bin/photon
clean:
	rm -rf build
help:
	@echo "make                 build/photon"
	@echo "make run [APP=DIR]   install what is missing, build, serve the app (apps/hello) [ARGS=--workers=2]"
	@echo "make test            install what is missing, build, run every spec"
	@echo "make ci              what .ci/run runs: build, test, lint, sanitizers, fuzzing"
	@echo "make deps            install from Debian what the build needs and is missing"
	@echo "make bench           measure beside a bare server, Go and Node; PARTS=\"streams lone\": these alone"
	@echo "make fuzz [SECONDS=] run every fuzz target"
	@echo "make lint | format   check | rewrite the sources' style"
	@echo "make install [PREFIX= DESTDIR=] | clean"
	@echo "with SAN=address,undefined, SAN=thread or HOSTILE=1: a build of that kind"
