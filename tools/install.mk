# make install, make uninstall: the GNU variables. The command-line tool looks for the library in ../lib beside its
# own folder first, so an installed tree works wherever it is moved to.
PREFIX      ?= /usr/local
prefix      ?= $(PREFIX)
exec_prefix ?= $(prefix)
bindir      ?= $(exec_prefix)/bin
libdir      ?= $(exec_prefix)/lib
includedir  ?= $(prefix)/include
docdir      ?= $(prefix)/share/doc/gpumemtrace
# Of no Python's own path, since one file serves them all: see the README.
pythondir   ?= $(prefix)/share/gpumemtrace/python
mandir      ?= $(prefix)/share/man
bashdir     ?= $(prefix)/share/bash-completion/completions
zshdir      ?= $(prefix)/share/zsh/site-functions
fishdir     ?= $(prefix)/share/fish/vendor_completions.d
INSTALL     ?= install
# The simulated GPU, for run --simulate: where nothing finds it by chance.
simgpudir   := $(libdir)/gpumemtrace/simgpu
# What writes the manual pages and completions: when cross-compiling, one that runs here.
TOOL        ?= $(BUILD)/gpumemtrace

MANUAL_PAGES   := $(patsubst docs/man/%.in,%,$(wildcard docs/man/*.in))
# What the README points to.
DOCUMENTS      := $(wildcard docs/*.md docs/*.yml docs/*.png docs/recipes/*.py)
SIMGPU_LIBRARIES := libcuda.so.1 $(RUNTIME_VERSIONS:%=libcudart.so.%) libcudart_static.a libnvidia-ml.so.1
PUBLIC_HEADERS := $(patsubst include/%,%,$(wildcard include/*.h include/gpumemtrace/*.h))

# Made each time: what it says depends on the variables of this very call.
.PHONY: $(BUILD)/gpumemtrace.pc
$(BUILD)/gpumemtrace.pc: tools/gpumemtrace.pc.in
	@mkdir -p $(@D)
	sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
		-e 's|@version@|$(VERSION)|' $< >$@

# From the tool's own tables, so that they say what --help says; and from docs/man, where no table has it.
.PHONY: $(BUILD)/share
$(BUILD)/share: cli
	@rm -rf $@ && mkdir -p $@
	$(TOOL) help-man >$@/gpumemtrace.1
	for name in $$($(TOOL) help-man --list); do $(TOOL) help-man $$name >$@/gpumemtrace-$$name.1 || exit 1; done
	$(TOOL) help-man --environment >$@/environment
	for page in $(MANUAL_PAGES); do \
		sed -e '/^@variables@$$/{r $@/environment' -e 'd}' -e 's|@version@|$(VERSION)|' \
			-e 's|@libdir@|$(subst -,\\-,$(libdir))|' -e 's|@pythondir@|$(subst -,\\-,$(pythondir))|' \
			docs/man/$$page.in >$@/$$page || exit 1; done
	for shell in bash zsh fish; do $(TOOL) completion $$shell >$@/$$shell || exit 1; done

.PHONY: install uninstall
install: all $(BUILD)/gpumemtrace.pc $(BUILD)/share
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(includedir)/gpumemtrace \
		$(DESTDIR)$(docdir)/docs/recipes $(DESTDIR)$(pythondir) $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(mandir)/man5 \
		$(DESTDIR)$(mandir)/man7 $(DESTDIR)$(bashdir) $(DESTDIR)$(zshdir) $(DESTDIR)$(fishdir)
	$(INSTALL) -m 644 $(BUILD)/share/*.1 $(DESTDIR)$(mandir)/man1
	$(INSTALL) -m 644 $(BUILD)/share/*.5 $(DESTDIR)$(mandir)/man5
	$(INSTALL) -m 644 $(BUILD)/share/*.7 $(DESTDIR)$(mandir)/man7
	$(INSTALL) -m 644 $(BUILD)/share/bash $(DESTDIR)$(bashdir)/gpumemtrace
	$(INSTALL) -m 644 $(BUILD)/share/zsh $(DESTDIR)$(zshdir)/_gpumemtrace
	$(INSTALL) -m 644 $(BUILD)/share/fish $(DESTDIR)$(fishdir)/gpumemtrace.fish
	$(INSTALL) -m 755 $(BUILD)/gpumemtrace $(DESTDIR)$(bindir)/gpumemtrace
	$(INSTALL) -m 755 $(BUILD)/libgpumemtrace.so $(DESTDIR)$(libdir)/libgpumemtrace.so
	$(INSTALL) -d $(DESTDIR)$(simgpudir)
	$(INSTALL) -m 644 $(SIMGPU_LIBRARIES:%=$(BUILD)/simgpu/%) $(DESTDIR)$(simgpudir)
	for header in $(PUBLIC_HEADERS); do \
		$(INSTALL) -m 644 include/$$header $(DESTDIR)$(includedir)/$$header || exit 1; done
	$(INSTALL) -m 644 $(BUILD)/gpumemtrace.pc $(DESTDIR)$(libdir)/pkgconfig/gpumemtrace.pc
	$(INSTALL) -m 644 python/gpumemtrace.py $(DESTDIR)$(pythondir)
	$(INSTALL) -m 644 README.md CHANGELOG.md LICENSE $(DESTDIR)$(docdir)
	for file in $(DOCUMENTS); do $(INSTALL) -m 644 $$file $(DESTDIR)$(docdir)/$$file || exit 1; done

uninstall:
	rm -f $(DESTDIR)$(bindir)/gpumemtrace $(DESTDIR)$(libdir)/libgpumemtrace.so \
		$(DESTDIR)$(libdir)/pkgconfig/gpumemtrace.pc $(addprefix $(DESTDIR)$(includedir)/,$(PUBLIC_HEADERS))
	rm -f $(addprefix $(DESTDIR)$(docdir)/,README.md CHANGELOG.md LICENSE $(DOCUMENTS)) $(DESTDIR)$(pythondir)/gpumemtrace.py
	rm -f $(DESTDIR)$(mandir)/man1/gpumemtrace.1 $(DESTDIR)$(mandir)/man1/gpumemtrace-*.1 \
		$(foreach page,$(MANUAL_PAGES),$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(page)))/$(page)) \
		$(DESTDIR)$(bashdir)/gpumemtrace $(DESTDIR)$(zshdir)/_gpumemtrace $(DESTDIR)$(fishdir)/gpumemtrace.fish
	rm -f $(addprefix $(DESTDIR)$(simgpudir)/,$(SIMGPU_LIBRARIES))
	-rmdir $(DESTDIR)$(simgpudir) $(DESTDIR)$(libdir)/gpumemtrace
	-rmdir $(addprefix $(DESTDIR),$(includedir)/gpumemtrace $(docdir)/docs/recipes $(docdir)/docs $(docdir) $(pythondir))
	-rmdir $(DESTDIR)$(patsubst %/,%,$(dir $(pythondir)))
