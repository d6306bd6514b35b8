# The simulated GPU: build/simgpu/libcuda.so.1 and the runtime on top of it, and what its tests need.
#
# NVIDIA's driver calls its own functions directly. got/libcuda.so.1 is the same driver, but reaches its own exports
# through the dynamic linker, as some versions do: an interposer then meets itself.
CUDA_HOME ?= /usr/local/cuda

SIM_SOURCES := $(sort $(wildcard tools/simgpu/*.c))
SIM_OBJECTS := $(call objects,sim,$(SIM_SOURCES))
SIM_CFLAGS  := -Itools/simgpu -fPIC -fvisibility=hidden -fsemantic-interposition

simgpu: $(BUILD)/simgpu/libcuda.so.1 $(BUILD)/simgpu/libcuda.so $(BUILD)/simgpu/got/libcuda.so.1 \
	$(BUILD)/simgpu/abi_facts.so

$(BUILD)/sim/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) $(SAN) $(SIM_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/simgpu/libcuda.so.1: $(SIM_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic $(SIM_OBJECTS) -lpthread -o $@

$(BUILD)/simgpu/got/libcuda.so.1: $(SIM_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libcuda.so.1 $(SIM_OBJECTS) -lpthread -o $@

$(BUILD)/simgpu/libcuda.so: $(BUILD)/simgpu/libcuda.so.1
	ln -sf libcuda.so.1 $@

# NVIDIA's own facts, for test_cuda_abi; empty where no toolkit is installed.
$(BUILD)/simgpu/abi_facts.so: tests/unit/abi/facts.c tests/unit/abi/facts.h src/cuda/abi_errors.h src/cuda/abi_formats.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -w -Isrc -fPIC -shared $< -o $@ $(addprefix -I,$(wildcard $(CUDA_HOME)/include))
