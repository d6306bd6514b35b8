# build/gpumemtrace: the command-line tool.
CLI_SOURCES := $(sort $(SHARED_SOURCES) $(addprefix src/trace/,reader.c records.c) \
	$(wildcard src/symbols/*.c tools/gpumemtrace/*.c))
CLI_OBJECTS := $(call objects,cli,$(CLI_SOURCES))

cli: $(BUILD)/gpumemtrace

$(BUILD)/gpumemtrace: $(CLI_OBJECTS)
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) $(CLI_OBJECTS) -ldw -lelf -liberty -ljansson -o $@
