# build/libgpumemtrace.so: what is preloaded. Needs nothing but the C library; libunwind is opened at run time, libiberty
# (for its demangler) is an archive.
LIB_SOURCES := $(SHARED_SOURCES) src/trace/log.c src/trace/own_file.c src/trace/writer.c \
	$(sort $(wildcard src/capture/*.c src/hooks/*.c src/hooks/*.S src/preload/*.c))
LIB_OBJECTS := $(call objects,lib,$(LIB_SOURCES))

lib: $(BUILD)/libgpumemtrace.so

$(BUILD)/libgpumemtrace.so: $(LIB_OBJECTS) $(OLD_LIBC_FILES) src/preload/exports.map
	$(CC) -shared $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,-soname,libgpumemtrace.so -Wl,-z,defs -Wl,-z,now \
		-Wl,--version-script=src/preload/exports.map $(LIB_OBJECTS) -liberty $(OLD_LIBC_FILES) -o $@
