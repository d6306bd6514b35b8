# make test-aarch64: the library and the simulated GPU, cross-compiled, under the end-to-end tests that need but a C compiler
# and a Python, run by an emulator of user programs. The command-line tool is this machine's: it reads recordings of both.
AARCH64        := $(BUILD)/aarch64
AARCH64_SYSTEM := $(abspath $(AARCH64))/system
AARCH64_CROSS  := $(foreach tool,CC=gcc CXX=g++ AR=ar LD=ld OBJCOPY=objcopy,$(subst =,=aarch64-linux-gnu-,$(tool)))
# But for those whose programs start others by themselves, past the emulator.
AARCH64_TESTS  ?= $(addprefix tests/e2e/test_,hooks_families.py hooks_forwarding.py hooks_look_ups.py \
	hooks_runtimes.py hooks_company.py hooks_graphs.py ways_to_cuda.py endings.py::test_library_writes_the_report_where_code_still_runs) \
	'tests/e2e/test_unharmed.py::test_native_stacks_do_without_what_unwinders_are_missing' -k 'not exec'
# The emulator sets address space aside page by page: a tebibyte takes it half a minute.
AARCH64_EMULATOR := qemu-aarch64 -L $(AARCH64_SYSTEM) -E SIMGPU_ADDRESSES=2G

$(AARCH64_SYSTEM)/whole: tests/aarch64/packages.sh
	tests/aarch64/packages.sh $(@D) base-files python3 libunwind-dev libiberty-dev
	ln -sf /usr/include/uthash.h $(@D)/usr/include/

# The needs of the build are looked for in that system, not in this one.
.PHONY: test-aarch64
test-aarch64: cli
	@tools/deps.sh aarch64
	@+$(MAKE) --no-print-directory -s $(AARCH64_SYSTEM)/whole
	@touch $(AARCH64)/needs
	@+$(MAKE) --no-print-directory -s $(JOBS) BUILD=$(AARCH64) $(AARCH64_CROSS) \
		CFLAGS='-O2 -g -isystem $(AARCH64_SYSTEM)/usr/include' LDFLAGS='-L$(AARCH64_SYSTEM)/usr/lib/aarch64-linux-gnu' lib simgpu
	@GPUMEMTRACE_BUILD=$(abspath $(AARCH64)) GPUMEMTRACE_TOOL=$(abspath $(BUILD))/gpumemtrace \
		GPUMEMTRACE_EMULATOR='$(AARCH64_EMULATOR)' GPUMEMTRACE_PYTHON=$(AARCH64_SYSTEM)/usr/bin/python3 \
		CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ $(PYTEST) $(AARCH64_TESTS)
