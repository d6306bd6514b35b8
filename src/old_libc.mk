# What is loaded into other people's programs also loads where glibc is older than here, down to 2.17 of 2012 (the first
# that aarch64 had). Functions that 2.34 moved into libc.so.6 must be asked of the files they were in before, which later
# versions keep, empty. So that the linker sees them there, these stand-ins are linked, and never loaded.
OLD_LIBC_VERSION := $(if $(findstring aarch64,$(shell $(CC) -dumpmachine 2>/dev/null)),GLIBC_2.17,GLIBC_2.2.5)
OLD_LIBC_FILES   := $(BUILD)/old_libc/libdl.so.2 $(BUILD)/old_libc/libpthread.so.0
OLD_LIBC_libdl.so.2      := dlerror dlopen dlsym dlvsym
OLD_LIBC_libpthread.so.0 := pthread_mutex_timedlock pthread_mutex_trylock pthread_once pthread_sigmask

$(OLD_LIBC_FILES): $(BUILD)/old_libc/%: src/old_libc.mk
	@mkdir -p $(@D)
	echo '$(OLD_LIBC_VERSION) { global: *; };' >$@.map
	printf 'void %s(void) {}\n' $(OLD_LIBC_$*) | $(CC) -shared -nostdlib -fno-builtin -w -x c - \
		-Wl,-soname,$* -Wl,--version-script=$@.map -o $@
