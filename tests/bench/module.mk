# make bench: what everything costs, beside what others cost; BENCH_LONG=1 for the long ones too, BENCH='events peers'
# for some. See bench.py.
BENCH_PARTS := $(filter src/base/% src/capture/% src/catalog/% src/ledger/% src/trace/%,$(LIB_SOURCES))

.PHONY: bench
bench: all $(addprefix $(BUILD)/bench/,events.so load.so parts.so driver/libcuda.so.1)
	@$(PYTHON) tests/bench/bench.py $(BUILD) $(BENCH)

# The others that `make bench` compares with, where they can be had: heaptrack from Debian, memray from PyPI.
.PHONY: bench-peers
bench-peers:
	@command -v heaptrack >/dev/null || apt-get install -y heaptrack || sudo -n apt-get install -y heaptrack
	$(PYTHON) -m venv $(BUILD)/bench/peers
	$(BUILD)/bench/peers/bin/pip install --quiet memray

BENCH_CC = @mkdir -p $(@D); $(CC) $(COMMON) $(CFLAGS) -fPIC -fno-optimize-sibling-calls -shared -Wl,-z,defs

$(BUILD)/bench/shape.so: tests/bench/shape.c
	$(BENCH_CC) -Wl,-soname,shape.so $< -o $@

$(BUILD)/bench/driver/libcuda.so.1: tests/bench/driver.c
	$(BENCH_CC) -Wl,-soname,libcuda.so.1 $< -o $@

$(BUILD)/bench/parts.so: tests/bench/parts.c $(call objects,lib,$(BENCH_PARTS)) $(BUILD)/bench/shape.so
	$(BENCH_CC) -fvisibility=hidden -Wl,-rpath,'$$ORIGIN' $^ -o $@

$(BUILD)/bench/%.so: tests/bench/%.c $(BUILD)/bench/shape.so
	$(BENCH_CC) -Wl,-rpath,'$$ORIGIN' $^ -o $@
