# Fuzzing. Each tests/fuzz/TARGET.c drives one reader of untrusted bytes; tests/fuzz/corpus/TARGET holds inputs that
# matter, among them each that ever found a mistake. `make test` runs the corpus through the targets; `make fuzz` looks
# for more with libFuzzer (clang), FUZZ_SECONDS for each target, or FUZZ_RUNS executions each.
FUZZ_TARGETS := recording saved_report suppressions settings python_lines call_frames elf_symbols \
	debug_info exports
FUZZ_SUPPORT := tests/fuzz/target.c
FUZZ_TOOLS   := $(filter-out tools/gpumemtrace/main.c,$(wildcard tools/gpumemtrace/*.c)) \
	$(wildcard src/export/*.c src/report/page/page*.c)
FUZZ_SECONDS ?= 60
FUZZ_RUNS    ?= -1
FUZZ_CC      ?= clang
FUZZ_SAN     := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_FLAGS    = -max_total_time=$(FUZZ_SECONDS) -runs=$(FUZZ_RUNS) -max_len=4096 -timeout=20 -rss_limit_mb=2048
FUZZ_LIBS    := -ldw -lelf -liberty -ljansson -lprotobuf-c -lsqlite3 -lz -lm -ldl -lpthread
CORPUS_PROGRAMS := $(FUZZ_TARGETS:%=$(BUILD)/corpus/%)
FUZZ_PROGRAMS   := $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)

$(BUILD)/test/src/export/pprof.o $(BUILD)/fuzz/objects/src/export/pprof.o: COMMON += -I$(BUILD)/generated
$(BUILD)/test/src/export/pprof.o $(BUILD)/fuzz/objects/src/export/pprof.o: $(BUILD)/generated/profile.pb-c.h

# The corpus, without a fuzzer and with any compiler.
.PHONY: corpus corpus-programs fuzz fuzz-programs
corpus-programs: $(CORPUS_PROGRAMS)
corpus: corpus-programs
	@status=0; for target in $(FUZZ_TARGETS); do \
		printf '== corpus of %s: ' $$target; \
		timeout 300 $(BUILD)/corpus/$$target tests/fuzz/corpus/$$target 2>$(BUILD)/corpus/$$target.log || \
			{ status=1; echo failed; tail -n 40 $(BUILD)/corpus/$$target.log; }; \
	done; exit $$status

# An archive, of which a target takes what it uses.
$(BUILD)/corpus/libtools.a: $(call objects,test,$(FUZZ_TOOLS)) $(BUILD)/generated/profile.pb-c.o
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

.SECONDARY: $(call objects,test,$(FUZZ_TARGETS:%=tests/fuzz/%.c) $(FUZZ_SUPPORT) tests/fuzz/corpus_main.c)
$(CORPUS_PROGRAMS): $(BUILD)/corpus/%: $(BUILD)/test/tests/fuzz/%.o \
		$(call objects,test,$(FUZZ_SUPPORT) tests/fuzz/corpus_main.c) $(BUILD)/corpus/libtools.a $(BUILD)/tests/libtested.a
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) $^ -Wl,--as-needed $(FUZZ_LIBS) -o $@

# With the fuzzer, everything compiled for it.
FUZZ_SOURCES := $(filter-out $(UNIT_SUPPORT),$(TESTED_SOURCES)) $(FUZZ_SUPPORT) $(FUZZ_TOOLS)
$(BUILD)/fuzz/objects/%.o: %.c | $(BUILD)/needs
	@mkdir -p $(@D)
	$(FUZZ_CC) $(COMMON) -O1 -g $(FUZZ_SAN) -fsanitize=fuzzer-no-link -I. -MMD -MP -c $< -o $@

$(BUILD)/fuzz/objects/libfuzzed.a: $(patsubst %.c,$(BUILD)/fuzz/objects/%.o,$(FUZZ_SOURCES)) $(BUILD)/generated/profile.pb-c.o
	@rm -f $@
	$(AR) rcs $@ $^

.SECONDARY: $(FUZZ_TARGETS:%=$(BUILD)/fuzz/objects/tests/fuzz/%.o)
$(FUZZ_PROGRAMS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/objects/tests/fuzz/%.o $(BUILD)/fuzz/objects/libfuzzed.a
	$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer $(LDFLAGS) $^ -Wl,--as-needed $(FUZZ_LIBS) -o $@

fuzz-programs: $(FUZZ_PROGRAMS)

# What is found is left in $(BUILD)/fuzz/found; what it learns, in $(BUILD)/fuzz/corpus.
fuzz:
	@tools/deps.sh test
	@+$(MAKE) --no-print-directory -s $(JOBS) fuzz-programs
	@mkdir -p $(BUILD)/fuzz/found
	@status=0; for target in $(FUZZ_TARGETS); do \
		echo "== fuzzing $$target"; mkdir -p $(BUILD)/fuzz/corpus/$$target; \
		$(BUILD)/fuzz/$$target $(FUZZ_FLAGS) -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/found/$$target- \
			$(BUILD)/fuzz/corpus/$$target tests/fuzz/corpus/$$target >$(BUILD)/fuzz/$$target.log 2>&1 || \
			{ status=1; tail -n 60 $(BUILD)/fuzz/$$target.log; }; \
		grep -a stat::number_of_executed_units $(BUILD)/fuzz/$$target.log; \
	done; exit $$status
