# make lint: formatting of everything; clang-tidy and cppcheck of what is shipped (tests do on purpose what they warn
# of). Each is silent when it finds nothing.
LINT_FILES := $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' 2>/dev/null)
LINT_SOURCES := $(filter src/%.c tools/%.c,$(LINT_FILES))
LINT_FLAGS := -D_GNU_SOURCE -Isrc -Iinclude -Itests/unit -Itools/simgpu -I$(BUILD)/generated

.PHONY: lint format-check tidy cppcheck format
lint:
	@tools/deps.sh lint
	@+status=0; for part in format-check cppcheck tidy; do \
		$(MAKE) --no-print-directory $$part || status=1; done; exit $$status

format-check:
	@echo "lint: clang-format of $(words $(LINT_FILES)) files"
	@clang-format --dry-run -Werror $(LINT_FILES)

tidy: $(BUILD)/generated/profile.pb-c.h
	@echo "lint: clang-tidy of $(words $(LINT_SOURCES)) files"
	@printf '%s\n' $(LINT_SOURCES) | xargs -P $(shell nproc) -n 4 sh -c \
		'clang-tidy --quiet "$$@" -- -std=gnu11 $(LINT_FLAGS) 2>/dev/null' tidy

cppcheck:
	@echo "lint: cppcheck"
	@cppcheck --quiet -j $(shell nproc) --std=c11 --enable=warning,performance,portability --inline-suppr \
		--suppressions-list=.cppcheck --error-exitcode=1 --max-configs=1 $(LINT_FLAGS) -D__x86_64__ '-DElfW(x)=Elf64_\#\#x' \
		 $(LINT_SOURCES)

# Rewrites the files in the project's format.
format:
	clang-format -i $(LINT_FILES)
