# build/gpumemtrace: the command-line tool.
CLI_SOURCES := $(sort $(SHARED_SOURCES) $(addprefix src/trace/,follow.c reader.c records.c) \
	$(PAGE_SOURCES) $(wildcard src/symbols/*.c src/export/*.c tools/gpumemtrace/*.c))
CLI_OBJECTS := $(call objects,cli,$(CLI_SOURCES)) $(BUILD)/generated/profile.pb-c.o
CLI_LIBS    := -ldw -lelf -liberty -ljansson -lprotobuf-c -lsqlite3 -lncursesw -lz -lm

cli: $(BUILD)/gpumemtrace

$(BUILD)/gpumemtrace: $(CLI_OBJECTS)
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) $(CLI_OBJECTS) $(CLI_LIBS) -o $@

# The code of pprof's messages.
$(BUILD)/generated/profile.pb-c.c $(BUILD)/generated/profile.pb-c.h &: src/export/profile.proto | $(BUILD)/needs
	@mkdir -p $(@D)
	protoc-c --proto_path=$(<D) --c_out=$(@D) $<

$(BUILD)/generated/%.o: $(BUILD)/generated/%.c
	$(CC) $(COMMON) $(CFLAGS) $(SAN) -MMD -MP -c $< -o $@

$(BUILD)/cli/src/export/pprof.o: COMMON += -I$(BUILD)/generated
$(BUILD)/cli/src/export/pprof.o: $(BUILD)/generated/profile.pb-c.h
