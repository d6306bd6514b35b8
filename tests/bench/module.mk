# make bench: what one event costs. make bench-capture: what its stack alone costs.
.PHONY: bench bench-capture
bench: all $(BUILD)/bench/bench_event.so
	@$(PYTHON) tests/bench/bench_event.py $(BUILD)

bench-capture: $(BUILD)/bench/bench_capture.so $(BUILD)/bench/bench_descend.so
	@$(PYTHON) tests/bench/bench_capture.py $(BUILD)

$(BUILD)/bench/bench_capture.so: tests/bench/bench_capture.c $(call objects,lib,$(wildcard src/capture/*.c) src/base/arena.c)
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) -fPIC -fvisibility=hidden -shared $^ -o $@

$(BUILD)/bench/%.so: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) -fPIC -fno-optimize-sibling-calls -shared $< -o $@
