# What is handed to others. make dist: the source, as a tarball that builds without git and network. make bindist: one
# folder, packed, that works where it is unpacked. make deb: Debian's packages, built from the source tarball.
DIST    := gpumemtrace-$(VERSION)
BINDIST := $(DIST)-linux-$(shell uname -m)
# Seconds since 1970, for what is packed: of the commit, where there is one.
DIST_TIME = $(or $(SOURCE_DATE_EPOCH),$(shell { [ -e .git ] && git log -1 --format=%ct; } || date +%s))

# What git has, in its order and with the time of the commit: the same commit gives the same bytes.
.PHONY: dist
dist:
	@[ -e .git ] || { echo "gpumemtrace: make dist packs what git has, and this is no clone" >&2; exit 1; }
	@git diff --quiet HEAD || echo "gpumemtrace: what is not committed is left out" >&2
	@mkdir -p $(BUILD)
	git -c tar.umask=0022 archive --prefix=$(DIST)/ -o $(BUILD)/$(DIST).tar HEAD
	gzip -9nf $(BUILD)/$(DIST).tar

# Its tool finds the libraries that come with it before those of the system, which are another version or not there.
$(BUILD)/bindist/gpumemtrace: $(CLI_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(SAN) $(LDFLAGS) -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib/gpumemtrace' \
		$(CLI_OBJECTS) $(CLI_LIBS) -o $@

.PHONY: bindist
bindist: $(BUILD)/bindist/gpumemtrace
	@rm -rf $(BUILD)/bindist/$(BINDIST)
	$(MAKE) --no-print-directory install DESTDIR=$(abspath $(BUILD))/bindist/$(BINDIST) prefix=
	$(INSTALL) -m 755 $(BUILD)/bindist/gpumemtrace $(BUILD)/bindist/$(BINDIST)/bin/gpumemtrace
	tools/bundle.sh $(BUILD)/bindist/$(BINDIST)
	tar -C $(BUILD)/bindist --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(DIST_TIME) -cf - $(BINDIST) | \
		gzip -9n >$(BUILD)/$(BINDIST).tar.gz

# What this make was told (BUILD, SANITIZE …) is not for the package's own. Debian keeps a package's own files beside its source, not in it: they join it where it is unpacked.
.PHONY: deb
deb: dist
	@command -v dh >/dev/null && command -v dpkg-buildpackage >/dev/null || { \
		echo "gpumemtrace: make deb needs the packages debhelper and dpkg-dev" >&2; exit 1; }
	@rm -rf $(BUILD)/deb && mkdir -p $(BUILD)/deb
	tar -C $(BUILD)/deb -xf $(BUILD)/$(DIST).tar.gz
	cp -r $(BUILD)/deb/$(DIST)/tools/debian $(BUILD)/deb/$(DIST)/debian
	sed -e 's|@version@|$(VERSION)|' -e "s|@date@|$$(LC_ALL=C date -R -u -d @$(DIST_TIME))|" \
		tools/debian/changelog.in >$(BUILD)/deb/$(DIST)/debian/changelog
	rm $(BUILD)/deb/$(DIST)/debian/changelog.in
	cd $(BUILD)/deb/$(DIST) && env -i PATH="$$PATH" HOME="$$HOME" LANG=C.UTF-8 DEB_BUILD_OPTIONS="$$DEB_BUILD_OPTIONS" \
		dpkg-buildpackage -us -uc -b
