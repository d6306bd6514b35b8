# The simulated GPU: build/simgpu/libcuda.so.1 and the runtime on top of it. Also what its tests need.
CUDA_HOME ?= /usr/local/cuda

simgpu: $(BUILD)/simgpu/abi_facts.so

# NVIDIA's own facts, for test_cuda_abi; empty where no toolkit is installed.
$(BUILD)/simgpu/abi_facts.so: tests/unit/abi/facts.c tests/unit/abi/facts.h src/cuda/abi_errors.h src/cuda/abi_formats.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(CFLAGS) -w -Isrc -fPIC -shared $< -o $@ $(addprefix -I,$(wildcard $(CUDA_HOME)/include))
