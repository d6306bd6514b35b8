# make demo: a small training loop, traced, and its report.
.PHONY: demo
demo:
	@tools/deps.sh demo
	@echo "building the library, the command-line tool and the simulated GPU ..."
	@+$(MAKE) --no-print-directory -s $(JOBS) all
	@tools/demo/run.sh $(BUILD)
