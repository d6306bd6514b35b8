# gpumemtrace. `make demo` shows it and `make test` tests it; each first installs what it needs (tools/deps.sh).
# `make` only builds. Everything made goes under $(BUILD).
#
# Variables a person sets: CC, CXX, CFLAGS, LDFLAGS, BUILD, SANITIZE (address, thread), WERROR=1, and for
# `make install` the GNU ones: prefix (or PREFIX), bindir, libdir, includedir, DESTDIR.

SANITIZE ?=
WERROR   ?=
CFLAGS   ?= -O2 -g
PYTHON   ?= /usr/bin/python3

ifeq ($(SANITIZE),address)
BUILD ?= build/asan
SAN   := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(SANITIZE),thread)
BUILD ?= build/tsan
# Fences are not modelled; ours stand between threads and a reader after a kill, not between threads.
SAN   := -fsanitize=thread $(if $(findstring clang,$(CC)),,-Wno-tsan)
else ifneq ($(SANITIZE),)
$(error SANITIZE is 'address', 'thread' or nothing, not '$(SANITIZE)')
endif
BUILD ?= build

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes
COMMON   := -std=gnu11 $(WARNINGS) $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isrc -Iinclude -fno-omit-frame-pointer
# What other people's programs load.
LOADED   := $(COMMON) -include src/base/old_stat.h -fPIC -fvisibility=hidden
VERSION  := $(shell sed -n 's/^.define GPUMEMTRACE_VERSION "\(.*\)"$$/\1/p' src/base/version.h)
# For a target that calls make again: all cores, unless the person said how many.
JOBS      = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

.DELETE_ON_ERROR:
.PHONY: all lib cli simgpu
all: lib cli simgpu

# $(call objects,folder under BUILD,sources): where their objects go
objects = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(filter %.c,$(2))) $(patsubst %.S,$(BUILD)/$(1)/%.o,$(filter %.S,$(2)))

# What the traced process and the command-line tool have in common.
SHARED_SOURCES := $(sort $(wildcard src/base/*.c src/catalog/*.c src/ledger/*.c src/report/*.c) src/trace/liveness.c \
	$(addprefix src/symbols/,demangle.c dynsym.c elf_file.c own_stack.c range_list.c))

include src/old_libc.mk
include src/module.mk
include src/report/page/module.mk
include tools/gpumemtrace/module.mk
include tools/simgpu/module.mk
include tools/demo/module.mk
include tests/module.mk
include tests/aarch64/module.mk
include tests/fuzz/module.mk
include tests/bench/module.mk
include tools/install.mk
include tools/dist.mk
include tools/lint.mk

# Says which package is missing, before a compiler says it in its own words.
$(BUILD)/needs: tools/deps.sh
	@tools/deps.sh --check build
	@mkdir -p $(@D) && touch $@

$(BUILD)/lib/%.o: %.c | $(BUILD)/needs
	@mkdir -p $(@D)
	$(CC) $(LOADED) $(CFLAGS) $(SAN) -ftls-model=initial-exec -MMD -MP -c $< -o $@

# A sanitizer's runtime asks our dlsym for its functions before it can serve instrumented code.
$(addprefix $(BUILD)/lib/src/,hooks/loader.o hooks/loaded.o hooks/symbols.o capture/fork_gate.o): SAN :=

$(BUILD)/lib/%.o: %.S | $(BUILD)/needs
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

$(BUILD)/cli/%.o: %.c | $(BUILD)/needs
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) $(SAN) -MMD -MP -c $< -o $@

.PHONY: clean
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)
