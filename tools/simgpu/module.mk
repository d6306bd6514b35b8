# The simulated GPU: build/simgpu/libcuda.so.1, the runtime on top of it, NVML beside it, and what its tests need.
#
# NVIDIA's driver calls its own functions directly. got/libcuda.so.1 is the same driver, but reaches its own exports
# through the dynamic linker, as some versions do: an interposer then meets itself.
CUDA_HOME ?= /usr/local/cuda
OBJCOPY   ?= objcopy

SIM_SOURCES := $(sort $(wildcard tools/simgpu/*.c))
SIM_OBJECTS := $(call objects,sim,$(SIM_SOURCES))
SIM_CFLAGS  := -include tools/simgpu/old_numbers.h -Itools/simgpu -fsemantic-interposition

RUNTIME_SOURCES  := $(sort $(wildcard tools/simgpu/runtime/*.c))
RUNTIME_VERSIONS := 12 13
RUNTIME_VERSION_12 := 12080
RUNTIME_VERSION_13 := 13000

simgpu: $(BUILD)/simgpu/libcuda.so.1 $(BUILD)/simgpu/libcuda.so $(BUILD)/simgpu/got/libcuda.so.1 \
	$(RUNTIME_VERSIONS:%=$(BUILD)/simgpu/libcudart.so.%) $(BUILD)/simgpu/libcudart.so \
	$(BUILD)/simgpu/libcudart_static.a $(BUILD)/simgpu/libnvidia-ml.so.1 $(BUILD)/simgpu/abi_facts.so

$(BUILD)/sim/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LOADED) $(CFLAGS) $(SAN) $(SIM_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/simgpu/libcuda.so.1: $(SIM_OBJECTS) $(OLD_LIBC_FILES)
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic $^ -lpthread -o $@

$(BUILD)/simgpu/got/libcuda.so.1: $(SIM_OBJECTS) $(OLD_LIBC_FILES)
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libcuda.so.1 $^ -lpthread -o $@

$(BUILD)/simgpu/libnvidia-ml.so.1: $(call objects,sim,$(sort $(wildcard tools/simgpu/nvml/*.c)))
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 -Wl,-Bsymbolic $^ -ldl -lpthread -o $@

$(BUILD)/simgpu/libcuda.so: $(BUILD)/simgpu/libcuda.so.1
	ln -sf libcuda.so.1 $@

# The runtime of CUDA 12 and 13, shared with NVIDIA's symbol versions, and static, where no cuda* name may become a
# dynamic symbol of the program it is linked into.
define runtime
$(BUILD)/cudart$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$(CC) $(LOADED) $(CFLAGS) $(SAN) $(SIM_CFLAGS) -DCUDART_VERSION=$(RUNTIME_VERSION_$(1)) -MMD -MP -c $$< -o $$@

$(BUILD)/simgpu/libcudart.so.$(1): $(call objects,cudart$(1),$(RUNTIME_SOURCES)) $(OLD_LIBC_FILES) tools/simgpu/runtime/cudart$(1).map
	@mkdir -p $$(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libcudart.so.$(1) -Wl,-Bsymbolic \
		-Wl,--version-script=tools/simgpu/runtime/cudart$(1).map $$(filter-out %.map,$$^) -ldl -lpthread -o $$@
endef
$(foreach version,$(RUNTIME_VERSIONS),$(eval $(call runtime,$(version))))

$(BUILD)/simgpu/libcudart.so: $(BUILD)/simgpu/libcudart.so.13
	ln -sf libcudart.so.13 $@

$(BUILD)/cudart_static/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(LOADED) $(CFLAGS) $(SAN) $(SIM_CFLAGS) -DSIMGPU_STATIC -MMD -MP -c $< -o $@

# One object in which only the runtime's own names are left global: nothing else can clash with the program's.
$(BUILD)/simgpu/libcudart_static.a: $(call objects,cudart_static,$(RUNTIME_SOURCES))
	@mkdir -p $(@D)
	$(LD) -r $^ -o $(BUILD)/cudart_static/cudart.o
	$(OBJCOPY) --wildcard --keep-global-symbol='cuda*' --keep-global-symbol='__cuda*' $(BUILD)/cudart_static/cudart.o
	rm -f $@
	$(AR) rcs $@ $(BUILD)/cudart_static/cudart.o

# NVIDIA's own facts, for test_cuda_abi; empty where no toolkit is installed.
$(BUILD)/simgpu/abi_facts.so: tests/unit/abi/facts.c tests/unit/abi/facts.h tests/unit/abi/nvml_facts.h src/cuda/abi_errors.h src/cuda/abi_formats.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -w -Isrc -fPIC -shared $< -o $@ $(addprefix -I,$(wildcard $(CUDA_HOME)/include))

# Programs that test_simgpu_runtime runs.
SIM_TESTS := $(addprefix $(BUILD)/simgpu/tests/,runtime_12 runtime_13 runtime_static lookup interposer.so)
unit-programs: $(SIM_TESTS)
SIM_TEST_CC = @mkdir -p $(@D); $(CC) $(COMMON) $(CFLAGS) $(SAN)

$(BUILD)/simgpu/tests/runtime_static: tests/unit/simgpu/runtime_program.c $(BUILD)/simgpu/libcudart_static.a
	$(SIM_TEST_CC) $^ -ldl -lpthread -o $@

$(BUILD)/simgpu/tests/runtime_%: tests/unit/simgpu/runtime_program.c $(BUILD)/simgpu/libcudart.so.%
	$(SIM_TEST_CC) $^ -o $@

$(BUILD)/simgpu/tests/lookup: tests/unit/simgpu/lookup_program.c
	$(SIM_TEST_CC) $< -ldl -o $@

$(BUILD)/simgpu/tests/interposer.so: tests/unit/simgpu/interposer.c
	$(SIM_TEST_CC) -fPIC -shared $< -ldl -o $@
