// The tables below the graph: every site, what is still allocated, what grows, out of memory, phases, and the notes.
const lists = (() => {
  const { report } = data;
  const size = (name) => ({ value: (row) => row[name], show: (row) => words.size(row[name]) });
  const groupName = (site) => report.groups[site.group].name;

  function siteCell(id, showIt) {
    const source = data.sourceOf(id);
    return element("div", null, buttonLink(data.titleOf(id), showIt), source ? element("div", "code", source) : null);
  }
  const site = (of) => ({
    title: "Line of code", isText: true, value: (row) => data.titleOf(of(row)),
    show: (row) => siteCell(of(row), () => holders.showLine(of(row))),
  });

  const rate = (row) => data.rateOf.get(row.id) || 0;

  function sites() {
    return sortableTable({
      caption: `${words.count(report.sites.length, "site")}: a stack, an API and a kind of memory each${
        report.sites_left_out ? `; ${words.grouped(report.sites_left_out)} smaller ones are not in this page` : ""}`,
      rows: report.sites, sortBy: 2,
      columns: [
        { title: "Site", isText: true, value: (row) => row.title, show: (row) => element("div", null,
          buttonLink(row.title, () => choose(row.id)), element("div", "small", `${row.api}, site ${row.id}`)) },
        { title: "Memory", isText: true, value: groupName },
        { title: `Allocated ${data.when}`, ...size("live_bytes") },
        { title: "At the peak", ...size("bytes_at_peak") },
        { title: "Allocated in all", ...size("allocated_bytes") },
        { title: "Calls", value: (row) => row.allocs, show: (row) => words.grouped(row.allocs) },
        { title: "Growth", value: rate, show: (row) => (rate(row) ? `${words.size(rate(row))}/s` : "") },
      ],
    });
  }

  function choose(id) {
    for (const row of document.querySelectorAll("#sites-table tr[data-row]"))
      row.classList.toggle("chosen", report.sites[Number(row.dataset.row)].id === id);
    holders.showSite(id);
  }

  const REASONS = { grew: "grows", adds_up: "adds up all through the run", late: "late in the run", many: "many blocks", rest: "" };

  function lines(caption, rows) {
    return sortableTable({
      caption, rows,
      columns: [
        site((row) => row.site), { title: "Bytes", ...size("bytes") },
        { title: "Blocks", value: (row) => row.blocks, show: (row) => words.grouped(row.blocks) },
        { title: "others freed", value: (row) => row.frees, show: (row) => words.grouped(row.frees) },
        { title: "since", value: (row) => row.oldest_ns || 0, show: (row) => (row.oldest_ns === null ? "" : words.time(row.oldest_ns)) },
        { title: "last", value: (row) => row.newest_ns || 0, show: (row) => (row.newest_ns === null ? "" : words.time(row.newest_ns)) },
        { title: "Why look", isText: true, value: (row) => REASONS[row.reason] },
      ],
    });
  }

  function leaks() {
    const { leaks } = report;
    const parts = [lines(`${words.size(leaks.live_bytes)} in ${words.count(leaks.live_blocks, "block")}, by line of code`, leaks.lines)];
    if (leaks.framework_blocks)
      parts.push(lines(`Of it, in tensors: ${words.size(leaks.framework_bytes)} in ${words.count(leaks.framework_blocks, "block")}`,
                       leaks.framework_lines));
    return element("div", null, ...parts, leaks.suppressed_blocks
      ? element("p", "hint", `${words.size(leaks.suppressed_bytes)} in ${words.count(leaks.suppressed_blocks, "block")} are suppressed.`) : null);
  }

  const withoutText = (without) => `${without.exact ? "" : "at most "}${words.size(without.bytes)}`;

  function fallSentence(fall) {
    const hidden = fall.line_count - fall.sites.length;
    const names = fall.sites.map((id) => data.titleOf(id)).join(", ") + (hidden ? ` and ${words.count(hidden, "more line")}` : "");
    return fall.enough ? `${fall.percent}% lower without ${names}: ${withoutText(fall.without)}.`
      : `Without ${names} it may still be ${words.size(fall.without.bytes)}.`;
  }

  function onePeak(peak) {
    const name = peak.group === null ? "all devices together" : report.groups[peak.group].name;
    const table = sortableTable({
      caption: `${words.capital(name)}: ${words.size(peak.bytes)} at ${words.time(peak.time_ns)}${
        peak.phases.length ? `, in ${peak.phases.join(" / ")}` : ""}`, rows: peak.lines,
      columns: [
        site((row) => row.site), { title: "Held", ...size("bytes") },
        { title: "of it", value: (row) => row.bytes, show: (row) => words.share(row.bytes, peak.bytes) },
        { title: "Blocks", value: (row) => row.blocks, show: (row) => words.grouped(row.blocks) },
        { title: "Peak without it", value: (row) => (row.without ? row.without.bytes : peak.bytes),
          show: (row) => (row.without ? withoutText(row.without) : "") },
      ],
    });
    const hidden = peak.line_count - peak.lines.length;
    return element("div", null, table, ...peak.falls.map((fall) => element("p", null, fallSentence(fall))),
                   hidden > 0 ? element("p", "hint", `${words.count(hidden, "smaller line")} more held the rest.`) : null);
  }

  const peaks = () => element("div", null, ...[report.whole_peak, ...report.peaks.slice().sort((a, b) => a.group - b.group)].filter(Boolean).map(onePeak));

  function growth() {
    return sortableTable({
      caption: "Lines of code that keep more and more, in many even steps up to the end", rows: report.growth,
      columns: [
        site((row) => row.site),
        { title: "a second", value: (row) => row.bytes_per_second, show: (row) => words.size(Math.round(row.bytes_per_second)) },
        { title: "a step", value: (row) => row.bytes_per_step || 0, show: (row) => (row.bytes_per_step === null ? "" : words.size(row.bytes_per_step)) },
        { title: "risen by", ...size("risen_bytes") },
        { title: "since", value: (row) => row.since_ns, show: (row) => words.time(row.since_ns) },
        { title: "sure", value: (row) => row.confidence, show: (row) => `${Math.round(row.confidence * 100)}%` },
        { title: "full in", value: (row) => row.exhausted_in_ns || 0, show: (row) => (row.exhausted_in_ns === null ? "" : words.time(row.exhausted_in_ns)) },
      ],
    });
  }

  const OUTCOMES = { granted: "as much was granted later", went_on: "the program went on with less", ended: "nothing was granted after it" };

  function ooms() {
    return sortableTable({
      caption: "Requests that the device had no memory for", rows: report.ooms, most: 6,
      columns: [
        { title: "at", value: (row) => row.time_ns, show: (row) => words.time(row.time_ns) }, site((row) => row.site),
        { title: "Asked for", ...size("requested_bytes") },
        { title: "Free", value: (row) => row.free_bytes || 0, show: (row) => (row.free_bytes === null ? "unknown" : words.size(row.free_bytes)) },
        { title: "Held here", ...size("live_bytes") },
        { title: "Why, and what to do", isText: true, isLong: true, value: (row) => row.verdict, show: (row) => element("div", null,
          element("p", null, row.verdict), row.advice ? element("p", null, row.advice) : null,
          element("p", "small", `${OUTCOMES[row.outcome]}.`)) },
      ],
    });
  }

  function phases() {
    return sortableTable({
      caption: "Phases that the program named, in device memory", rows: report.phases,
      columns: [
        { title: "Phase", isText: true, value: (row) => row.name, show: (row) => `${"· ".repeat(row.depth)}${row.name}` },
        { title: "times", value: (row) => row.count, show: (row) => words.grouped(row.count) },
        { title: "lasted", value: (row) => row.duration_ns, show: (row) => words.time(row.duration_ns) },
        { title: "Peak in it", ...size("peak_bytes") }, { title: "Kept after it", ...size("net_bytes") },
        { title: "Tensors' peak", ...size("framework_peak_bytes") },
        { title: "Rose most", isText: true, value: (row) => row.sites.map((one) => data.titleOf(one.site)).join(", "),
          show: (row) => element("div", null, ...row.sites.map((one) => element("div", null,
            buttonLink(data.titleOf(one.site), () => holders.showLine(one.site)), ` ${words.size(one.rise_bytes)}`))) },
      ],
    });
  }

  const notes = () => element("ul", null, ...report.notes.map((note) => element("li", null, note)));

  // X: its id, its heading, how many rows, what it is made of.
  const PARTS = [
    ["ooms-table", "Out of memory", () => report.ooms.length, ooms],
    ["growth-table", "What grows", () => report.growth.length, growth],
    ["peaks-table", "What made each peak", () => report.peaks.length, peaks],
    ["leaks-table", `Still allocated ${data.when}`, () => report.leaks.lines.length, leaks],
    ["device-memory", "Who has the devices' memory", () => report.memory_map.length, deviceMemory.make],
    ["phases-table", "Phases", () => report.phases.length, phases],
    ["sites-table", "All sites", () => report.sites.length, sites],
    ["notes", "What to know before trusting the figures", () => report.notes.length, notes],
  ];

  function start() {
    for (const [id, title, count, make] of PARTS) {
      if (count() === 0) continue;
      const part = element("section", null, element("h2", null, title), make());
      part.id = id;
      byId("lists").append(part);
    }
  }

  return { start };
})();
