# make bench: what one event costs.
.PHONY: bench
bench: all $(BUILD)/bench/bench_event.so
	@$(PYTHON) tests/bench/bench_event.py $(BUILD)

$(BUILD)/bench/%.so: tests/bench/%.c
	@mkdir -p $(@D)
	$(CC) $(COMMON) $(CFLAGS) -fPIC -fno-optimize-sibling-calls -shared $< -o $@
