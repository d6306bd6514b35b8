// The tables below the graph: out of memory, what grows, peaks, what is still allocated, phases, every site, and the notes.
const lists = (() => {
  const { report } = data;
  const groupName = (site) => report.groups[site.group].name;

  // Columns by what they hold; null, which is unknown, shows as nothing.
  const column = (wording) => (title, name) => ({
    title, value: (row) => row[name] || 0, show: (row) => (row[name] === null ? "" : wording(row[name])),
  });
  const bytes = column(words.size), count = column(words.grouped), time = column(words.time);
  const rate = column((value) => words.size(Math.round(value)));

  function siteCell(id) {
    const source = data.sourceOf(id);
    return element("div", null, buttonLink(data.titleOf(id), () => holders.showLine(id)),
                   source ? element("div", "code", source) : null);
  }
  const lineOfCode = {
    title: "Line of code", isText: true, value: (row) => data.titleOf(row.site), show: (row) => siteCell(row.site),
  };

  const rateOf = (row) => data.rateOf.get(row.id) || 0;

  function sites() {
    const leftOut = report.sites_left_out ? `; ${words.grouped(report.sites_left_out)} smaller ones are not in this page` : "";
    return sortableTable({
      caption: `${words.count(report.sites.length, "site")}: a stack, an API and a kind of memory each${leftOut}`,
      rows: report.sites, sortBy: 2,
      columns: [
        { title: "Site", isText: true, value: (row) => row.title, show: (row) => element("div", null,
          buttonLink(row.title, () => choose(row.id)), element("div", "small", `${row.api}, site ${row.id}`)) },
        { title: "Memory", isText: true, value: groupName },
        bytes(`Allocated ${data.when}`, "live_bytes"), bytes("At the peak", "bytes_at_peak"),
        bytes("Allocated in all", "allocated_bytes"), count("Calls", "allocs"),
        { title: "Growth", value: rateOf, show: (row) => (rateOf(row) ? `${words.size(rateOf(row))}/s` : "") },
      ],
    });
  }

  function choose(id) {
    for (const row of document.querySelectorAll("#sites-table tr[data-row]"))
      row.classList.toggle("chosen", report.sites[Number(row.dataset.row)].id === id);
    holders.showSite(id);
  }

  const REASONS = { grew: "grows", adds_up: "adds up all through the run", late: "late in the run", many: "many blocks", rest: "" };

  function lines(before, whole, blocks, rows) {
    return sortableTable({
      caption: `${before}${words.size(whole)} in ${words.count(blocks, "block")}, by line of code`, rows,
      columns: [
        lineOfCode, bytes("Bytes", "bytes"), count("Blocks", "blocks"), count("others freed", "frees"),
        time("since", "oldest_ns"), time("last", "newest_ns"),
        { title: "Why look", isText: true, value: (row) => REASONS[row.reason] },
      ],
    });
  }

  function leaks() {
    const { leaks } = report;
    const parts = [lines("", leaks.live_bytes, leaks.live_blocks, leaks.lines)];
    if (leaks.framework_blocks)
      parts.push(lines("Of it, in tensors: ", leaks.framework_bytes, leaks.framework_blocks, leaks.framework_lines));
    if (leaks.suppressed_blocks)
      parts.push(element("p", "hint", `${words.size(leaks.suppressed_bytes)} in ${
        words.count(leaks.suppressed_blocks, "block")} are suppressed.`));
    return element("div", null, ...parts);
  }

  const withoutText = (without) => `${without.exact ? "" : "at most "}${words.size(without.bytes)}`;

  function fallSentence(fall) {
    const hidden = fall.line_count - fall.sites.length;
    const names = fall.sites.map(data.titleOf).join(", ") + (hidden ? ` and ${words.count(hidden, "more line")}` : "");
    return fall.enough ? `${fall.percent}% lower without ${names}: ${withoutText(fall.without)}.`
      : `Without ${names} it may still be ${words.size(fall.without.bytes)}.`;
  }

  function onePeak(peak) {
    const name = peak.group === null ? "all devices together" : report.groups[peak.group].name;
    const phases = peak.phases.length ? `, in ${peak.phases.join(" / ")}` : "";
    const table = sortableTable({
      caption: `${words.capital(name)}: ${words.size(peak.bytes)} at ${words.time(peak.time_ns)}${phases}`, rows: peak.lines,
      columns: [
        lineOfCode, bytes("Held", "bytes"),
        { title: "of it", value: (row) => row.bytes, show: (row) => words.share(row.bytes, peak.bytes) },
        count("Blocks", "blocks"),
        { title: "Peak without it", value: (row) => (row.without ? row.without.bytes : peak.bytes),
          show: (row) => (row.without ? withoutText(row.without) : "") },
      ],
    });
    const hidden = peak.line_count - peak.lines.length;
    return element("div", null, table, ...peak.falls.map((fall) => element("p", null, fallSentence(fall))),
                   hidden > 0 ? element("p", "hint", `${words.count(hidden, "smaller line")} more held the rest.`) : null);
  }

  function peaks() {
    const ordered = report.peaks.slice().sort((a, b) => a.group - b.group);
    return element("div", null, ...[report.whole_peak, ...ordered].filter(Boolean).map(onePeak));
  }

  function growth() {
    return sortableTable({
      caption: "Lines of code that keep more and more, in many even steps up to the end", rows: report.growth,
      columns: [
        lineOfCode, rate("a second", "bytes_per_second"), bytes("a step", "bytes_per_step"), bytes("risen by", "risen_bytes"),
        time("since", "since_ns"),
        { title: "sure", value: (row) => row.confidence, show: (row) => `${Math.round(row.confidence * 100)}%` },
        time("full in", "exhausted_in_ns"),
      ],
    });
  }

  const OUTCOMES = { granted: "as much was granted later", went_on: "the program went on with less",
                     ended: "nothing was granted after it" };

  function verdict(row) {
    return element("div", null, element("p", null, row.verdict), row.advice ? element("p", null, row.advice) : null,
                   element("p", "small", `${words.capital(OUTCOMES[row.outcome])}.`));
  }

  function ooms() {
    return sortableTable({
      caption: "Requests that the device had no memory for", rows: report.ooms, most: 6,
      columns: [
        time("at", "time_ns"), lineOfCode, bytes("Asked for", "requested_bytes"), bytes("Free", "free_bytes"),
        bytes("Held here", "live_bytes"),
        { title: "Why, and what to do", isText: true, isLong: true, value: (row) => row.verdict, show: verdict },
      ],
    });
  }

  function risers(row) {
    return element("div", null, ...row.sites.map((one) => element("div", null,
      buttonLink(data.titleOf(one.site), () => holders.showLine(one.site)), ` ${words.size(one.rise_bytes)}`)));
  }

  function phases() {
    return sortableTable({
      caption: "Phases that the program named, in device memory", rows: report.phases,
      columns: [
        { title: "Phase", isText: true, value: (row) => row.name, show: (row) => `${"· ".repeat(row.depth)}${row.name}` },
        count("times", "count"), time("lasted", "duration_ns"), bytes("Peak in it", "peak_bytes"),
        bytes("Kept after it", "net_bytes"), bytes("Tensors' peak", "framework_peak_bytes"),
        { title: "Rose most", isText: true, isLong: true, show: risers,
          value: (row) => row.sites.map((one) => data.titleOf(one.site)).join(", ") },
      ],
    });
  }

  const notes = () => element("ul", null, ...report.notes.map((note) => element("li", null, note)));

  // A part's id, its heading, how many rows it has, and what makes it.
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
    for (const [id, title, size, make] of PARTS) {
      if (size() === 0) continue;
      const part = element("section", null, element("h2", null, title), make());
      part.id = id;
      byId("lists").append(part);
    }
  }

  return { start };
})();
