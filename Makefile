# gpumemtrace. `make demo` shows it, `make test` tests it; each installs what it needs first (tools/deps.sh).
# Everything built goes under $(BUILD). Variables a person sets: CC, CXX, BUILD, SANITIZE (address, thread), WERROR=1.

BUILD    ?= build
CFLAGS   ?= -O2 -g
SANITIZE ?=
WERROR   ?=

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes
COMMON   := -std=gnu11 $(WARNINGS) $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isrc -Iinclude -fno-omit-frame-pointer
ifeq ($(SANITIZE),address)
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined
else ifeq ($(SANITIZE),thread)
SAN := -fsanitize=thread
endif

.DELETE_ON_ERROR:
.PHONY: all lib cli simgpu
all: lib cli simgpu

# $(call objects,folder under BUILD,sources): where their objects go
objects = $(patsubst %.c,$(BUILD)/$(1)/%.o,$(filter %.c,$(2))) $(patsubst %.S,$(BUILD)/$(1)/%.o,$(filter %.S,$(2)))

# What the traced process and the command-line tool have in common.
SHARED_SOURCES := $(sort $(wildcard src/base/*.c src/catalog/*.c src/ledger/*.c src/report/*.c) src/symbols/dynsym.c)

include src/module.mk
include tools/gpumemtrace/module.mk
include tools/simgpu/module.mk
include tests/module.mk

$(BUILD)/lib/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) $(SAN) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c $< -o $@

$(BUILD)/lib/%.o: %.S
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) -fPIC -MMD -MP -c $< -o $@

$(BUILD)/cli/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) $(SAN) -MMD -MP -c $< -o $@

.PHONY: clean
clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
