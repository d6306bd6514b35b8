# The HTML report's own parts: d3 from the distribution and the page's sources, put together for embedded.S.
D3          ?= /usr/share/javascript/d3/d3.min.js
PAGE_BUILT  := $(BUILD)/page
PAGE_PARTS  := $(PAGE_BUILT)/before-data.html $(PAGE_BUILT)/after-data.html
PAGE_SOURCES := $(sort $(wildcard src/report/page/*.c)) src/report/page/embedded.S

$(PAGE_BUILT)/made: $(wildcard src/report/page/*.js src/report/page/*.css) src/report/page/page.html \
		src/report/page/d3-licence.txt src/report/page/assemble.sh | $(BUILD)/needs
	src/report/page/assemble.sh $(D3) $(PAGE_BUILT)
	@touch $@

$(PAGE_PARTS): $(PAGE_BUILT)/made ;

$(BUILD)/cli/src/report/page/embedded.o: src/report/page/embedded.S $(PAGE_PARTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Wa,-I$(PAGE_BUILT) -c $< -o $@
