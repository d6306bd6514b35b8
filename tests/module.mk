# Tests. Each tests/unit/test_*.c is a cmocka program linked with what it uses of everything but the hooks;
# tests/e2e is run by pytest against the build products.
UNIT_SOURCES  := $(sort $(wildcard tests/unit/test_*.c))
UNIT_SUPPORT  := $(filter-out tests/unit/test_%,$(sort $(wildcard tests/unit/*.c)))
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SOURCES))
# Of the hooks, what can stand without a driver.
TESTED_HOOKS  := src/hooks/symbols.c src/hooks/array_size.c src/hooks/tables.c
TESTED_SOURCES := $(sort $(SHARED_SOURCES) $(wildcard src/trace/*.c src/capture/*.c src/symbols/*.c src/preload/*.c) \
	$(wildcard src/report/page/timeline*.c) $(TESTED_HOOKS) $(UNIT_SUPPORT))
TESTED_OBJECTS := $(call objects,test,$(TESTED_SOURCES))
UNIT_LIBS     := -lcmocka -ldw -lelf -liberty -ljansson -lm -ldl -lpthread
PYTEST        := $(PYTHON) -B -m pytest -p no:cacheprovider -q
# What the test programs need to find the build products, and the sanitizer's runtime where there is one.
TEST_ENV = GPUMEMTRACE_BUILD=$(abspath $(BUILD)) SANITIZE=$(SANITIZE) CC='$(CC)' CXX='$(CXX)'

.PHONY: test check run-tests unit e2e
test:
	@tools/deps.sh test
	@echo "building what is tested ..."
	@+$(MAKE) --no-print-directory -s $(JOBS) all unit-programs corpus-programs
	@+$(MAKE) --no-print-directory run-tests

check: test

# All run even when the first fails, so that one run shows everything that is wrong.
run-tests:
	@status=0; \
	$(MAKE) --no-print-directory unit || status=1; \
	$(MAKE) --no-print-directory corpus || status=1; \
	$(MAKE) --no-print-directory e2e || status=1; \
	exit $$status

# What has threads in it, where `make test SANITIZE=thread` takes too long: the unit programs that make some, and of the
# end-to-end tests those whose name says so, but for those that end an interpreter amid its threads, or need PyTorch or a
# browser.
THREADED_UNITS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(sort $(shell grep -l pthread_create tests/unit/test_*.c)))
.PHONY: test-threads
test-threads:
	@tools/deps.sh test
	@+$(MAKE) --no-print-directory -s $(JOBS) all $(THREADED_UNITS)
	@status=0; \
	$(TEST_ENV) tests/run_unit.sh $(THREADED_UNITS) || status=1; \
	$(MAKE) --no-print-directory e2e \
		E2E="tests/e2e -k 'thread and not (daemon or endings or capture_python or page or torch)'" || status=1; \
	exit $$status

.PHONY: unit-programs
unit-programs: $(UNIT_PROGRAMS)

# UNIT=name runs one: make unit UNIT=test_ledger
unit: all unit-programs
	@$(TEST_ENV) tests/run_unit.sh $(if $(UNIT),$(BUILD)/tests/$(UNIT),$(UNIT_PROGRAMS))

# E2E=arguments for pytest: make e2e E2E='tests/e2e/test_cli_diff.py -k device'
e2e: all
	@$(TEST_ENV) $(PYTEST) $(or $(E2E),tests/e2e)

# What `make test` plays a part of, whole: 1,000 random programs of every family against their own books, and 10 million
# random calls with and without the library; 1,000 random programs against the stand-in allocator's own figures; a
# recording of 100 million events that stays under 64 MiB; 1,000 programs killed at any moment, 2,000 in a checkpoint;
# a failure of each single call that the library makes; 200 ends of each Python amid threads that allocate;
# 64 threads at work for ten minutes; 50,000 damaged recordings and reports.
.PHONY: soak soak-books soak-fragmentation soak-bounded soak-kills soak-faults soak-shutdowns soak-threads soak-page soak-hostile
soak: soak-books soak-fragmentation soak-bounded soak-kills soak-faults soak-shutdowns soak-threads soak-page soak-hostile

soak-books soak-fragmentation soak-bounded soak-kills soak-faults soak-shutdowns soak-threads soak-page soak-hostile: soak-build
soak-threads:
	@$(TEST_ENV) THREAD_SECONDS=300 $(PYTEST) -s tests/e2e/test_threads.py
soak-hostile:
	@$(TEST_ENV) HOSTILE_ROUNDS=10000 $(PYTEST) tests/e2e/test_hostile.py tests/e2e/test_hostile_outputs.py \
		-k 'damaged or changed'
soak-page:
	@$(TEST_ENV) PAGE_EVENTS=10000000 $(PYTEST) -s tests/e2e/test_page.py -k long_recordings
soak-books:
	@$(TEST_ENV) HOOKS_SEEDS=1000 HOOKS_CALLS=10000 $(PYTEST) tests/e2e/test_hooks_random.py
	@$(TEST_ENV) BOOKS_SEEDS=1000 $(PYTEST) tests/e2e/test_random_books.py
soak-shutdowns:
	@$(TEST_ENV) SHUTDOWNS=200 $(PYTEST) tests/e2e/test_capture_python.py -k 'daemon_threads'
soak-faults:
	@$(TEST_ENV) FAULTS=all $(PYTEST) -s tests/e2e/test_faults.py
soak-fragmentation:
	@$(TEST_ENV) FRAGMENTATION_SEEDS=1000 $(PYTEST) tests/e2e/test_fragmentation.py
soak-bounded:
	@$(TEST_ENV) BOUNDED_CALLS=100000000 BOUNDED_SIZE=64M $(PYTEST) -s tests/e2e/test_bounded.py -k 'long_run and 1'
soak-kills:
	@$(TEST_ENV) KILLS=1000 $(PYTEST) tests/e2e/test_killed.py -k acknowledged
	@UNIT_TIMEOUT=3600 GPUMEMTRACE_KILLS=1000 $(TEST_ENV) tests/run_unit.sh $(BUILD)/tests/test_trace_checkpoint_killed

.PHONY: soak-build
soak-build:
	@tools/deps.sh test
	@+$(MAKE) --no-print-directory $(JOBS) all unit-programs

$(BUILD)/test/%.o: %.c | $(BUILD)/needs
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) $(SAN) -fPIC -Itests/unit -I. -MMD -MP -c $< -o $@

# A sanitizer's runtime maps memory through it before it can serve instrumented code.
$(BUILD)/test/tests/unit/kernel.o: SAN :=

# An archive, so that a test may replace a function by its own.
$(BUILD)/tests/libtested.a: $(TESTED_OBJECTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

.SECONDARY: $(call objects,test,$(UNIT_SOURCES))
$(UNIT_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/test/tests/unit/%.o $(BUILD)/tests/libtested.a
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -rdynamic $< $(BUILD)/tests/libtested.a -Wl,--as-needed $(UNIT_LIBS) -o $@
