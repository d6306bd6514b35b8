// The top of the page: what ran, what is wrong, and what to do next, in sentences.
const summary = (() => {
  const { report } = data;
  const ENDS = { exited: "exited", killed: "killed or crashed", running: "still running" };
  const strong = (text) => element("strong", null, text);

  function head() {
    const process = report.process;
    const base = (path) => path.split("/").pop() || path;
    const command = process.argv.map((word, index) => (index ? word : base(word))).join(" ");
    byId("program").textContent = command || process.exe || "a program without a name";
    document.title = `gpumemtrace: ${command || process.exe}`;
    byId("process").textContent = [
      `pid ${process.pid}`, process.rank === null ? null : `rank ${process.rank}`, process.host ? `on ${process.host}` : null,
      process.start_time ? `started ${process.start_time.slice(0, 19).replace("T", " ")} UTC` : null,
      `ran ${words.time(process.duration_ns)}`, ENDS[process.end],
    ].filter(Boolean).join(", ");
  }

  function finding(isAlarm, ...sentences) {
    return element("li", isAlarm ? "finding alarm" : "finding",
                   ...sentences.map((parts) => element("p", parts.className, ...parts.content)));
  }
  const sentence = (...content) => ({ content });
  const next = (...content) => ({ content, className: "next" });
  const source = (id) => (data.sourceOf(id) ? { content: [data.sourceOf(id)], className: "code" } : next());
  const filled = (sentences) => sentences.filter((one) => one.content.length);

  const line = (id) => buttonLink(data.titleOf(id), () => holders.showLine(id));

  // "train.py:45 in forward 72.0 MiB (25.9%), …"
  const shares = (lines, whole) => lines.slice(0, 3).flatMap((row, index) =>
    [index ? ", " : "", line(row.site), ` ${words.size(row.bytes)} (${words.share(row.bytes, whole)})`]);

  function outOfMemory() {
    const oom = report.ooms[report.ooms.length - 1];
    if (!oom) return null;
    const times = report.ooms.length > 1 ? ` ${report.ooms.length} times; the last` : "";
    return finding(true, ...filled([
      sentence(strong(`Out of memory${times} at ${words.time(oom.time_ns)}: `),
               `${oom.api} asked for ${words.size(oom.requested_bytes)}`,
               oom.total_bytes === null ? "" : `, ${words.size(oom.free_bytes)} of ${words.size(oom.total_bytes)} were free`,
               "; asked for by ", line(oom.site), "."),
      source(oom.site), sentence(oom.verdict), oom.advice ? next(strong("What to do: "), oom.advice) : next(),
      oom.lines.length ? sentence("Held then by ", ...shares(oom.lines, oom.live_bytes), ".") : next(),
    ]));
  }

  function growth(row) {
    const group = report.groups[data.sites.get(row.site).group];
    const full = row.exhausted_in_ns === null ? "" : `; at this rate ${group.name} is full in ${words.time(row.exhausted_in_ns)}`;
    return finding(true, ...filled([
      sentence(strong("Growing: "), line(row.site), ` keeps ${words.size(Math.round(row.bytes_per_second))} more each second`,
               row.bytes_per_step ? `, ${words.size(row.bytes_per_step)} each step` : "", `${full}.`),
      source(row.site),
      next(strong("What to do: "), "find what holds on to the result of this line (a list, a cache, a graph of ",
           "gradients) and let it go, or keep the number instead of the tensor."),
    ]));
  }

  // Lines are listed by why they are worth a look, and only then by size.
  function rankOf(first, whole) {
    if (first.bytes === whole) return "all";
    return first.bytes > whole / 2 ? "most" : "look first at what is held";
  }

  function leaks() {
    const { leaks } = report, lines = leaks.framework_blocks ? leaks.framework_lines : leaks.lines;
    const whole = leaks.framework_blocks ? leaks.framework_bytes : leaks.live_bytes;
    if (leaks.live_blocks === 0)
      return finding(false, sentence(strong(`Nothing was still allocated ${data.when}.`)));
    const first = lines[0];
    const inTensors = leaks.framework_blocks ? `, of it ${words.size(leaks.framework_bytes)} in tensors` : "";
    const isTold = first && data.growingTitles.has(data.titleOf(first.site));
    const addsUp = first && ["grew", "adds_up"].includes(first.reason);
    return finding(addsUp && !isTold, ...filled([
      sentence(strong(`Still allocated ${data.when}: ${words.size(leaks.live_bytes)}`),
               ` in ${words.count(leaks.live_blocks, "block")}${inTensors}`,
               ...(first && (addsUp || first.bytes > whole / 20) ? [`; ${rankOf(first, whole)} by `, line(first.site),
                            ` (${words.share(first.bytes, whole)}, ${words.count(first.blocks, "block")}${
                              first.frees === 0 && first.blocks > 1 ? ", none freed" : ""})`] : []), "."),
      first && !isTold ? source(first.site) : next(),
      addsUp && !isTold
        ? next("It keeps adding up, all through the run: look here first.") : next(),
    ]));
  }

  // The least that would have to go for the peak to be lower: the one sentence that says where work pays.
  function fallOf(peak) {
    const fall = peak.falls.find((one) => one.enough && one.sites.length === one.line_count && one.line_count > 0);
    if (!fall) return next();
    const names = fall.sites.flatMap((id, index) => [index ? (index + 1 < fall.sites.length ? ", " : " and ") : "", line(id)]);
    return sentence("Without ", ...names, ` it would be ${fall.without.exact ? "" : "at most "}${words.size(fall.without.bytes)}: ${
      fall.percent}% lower or more.`);
  }

  function peak() {
    const peaks = report.peaks.filter((one) => report.groups[one.group].layer === "driver");
    const main = d3.max(peaks.filter((one) => report.groups[one.group].space === "device"), (one) => one.bytes);
    const one = peaks.find((candidate) => candidate.bytes === main) || peaks[0];
    if (!one) return finding(false, sentence(strong("No GPU memory was allocated.")));
    const inner = report.peaks.find((candidate) => isInside(candidate.group, one.group)) || one;
    return finding(false, ...filled([
      sentence(strong(`Peak of ${report.groups[one.group].name}: ${words.size(one.bytes)}`), ` at ${words.time(one.time_ns)}`,
               one.phases.length ? `, in ${one.phases.join(" / ")}` : "", inner === one ? ", held by " : ", in tensors by ",
               ...shares(inner.lines, inner.bytes), "."),
      fallOf(inner),
      next("To lower it, free or shrink what these lines hold at that moment. ",
           buttonLink("Show the peak", () => holders.showPeak(one.group))),
    ]));
  }

  // Tensors on device 0 are inside device 0's memory.
  function isInside(inner, outer) {
    const a = report.groups[inner], b = report.groups[outer];
    return a.layer === "framework" && b.layer === "driver" && a.space === b.space && a.device === b.device;
  }

  function stranded() {
    const rows = report.fragmentation.flatMap((row) => row.frameworks.map((framework) => ({ row, framework })))
      .map(({ row, framework }) => ({ row, now: framework, at: framework.at_peak || framework, name: framework.name }))
      .filter(({ at }) => at.stranded_bytes > at.reserved_bytes / 10);
    return rows.map(({ row, at, name }) => finding(false, sentence(
      strong(`Fragmented: at device ${row.device}'s peak ${words.size(at.stranded_bytes)}`),
      ` of the ${words.size(at.reserved_bytes)} that ${name} reserved lay between living blocks and could not be given back`,
      ...(at.pinned.length ? ["; most because of ", line(at.pinned[0].site)] : []), ". ",
      buttonLink("Show the map", () => byId("fragmentation").scrollIntoView()))));
  }

  function spaces() {
    const rows = data.groups.map((index) => report.groups[index]);
    byId("spaces").append(sortableTable({
      caption: "What each kind of memory held", rows,
      columns: [
        { title: "Memory", isText: true, value: (row) => row.name,
          show: (row) => buttonLink(row.name, () => holders.showGroup(report.groups.indexOf(row))) },
        { title: "Peak", value: (row) => row.peak_bytes, show: (row) => words.size(row.peak_bytes) },
        { title: "at", value: (row) => row.peak_time_ns, show: (row) => words.time(row.peak_time_ns) },
        { title: `Still allocated ${data.when}`, value: (row) => row.live_bytes,
          show: (row) => (row.live_blocks ? `${words.size(row.live_bytes)} in ${words.count(row.live_blocks, "block")}` : "nothing") },
        { title: "Allocations", value: (row) => row.allocs, show: (row) => words.grouped(row.allocs) },
        { title: "freed", value: (row) => row.frees, show: (row) => words.grouped(row.frees) },
      ],
    }));
  }

  function start() {
    head();
    const growing = report.growth.filter((row) => data.sites.has(row.site)).slice(0, 2).map(growth);
    const findings = [outOfMemory(), ...growing, leaks(), peak(), ...stranded()].filter(Boolean);
    byId("findings").append(element("ol", null, ...findings));
    if (data.groups.length) spaces();
    byId("about").textContent = `Made by gpumemtrace ${report.version} from a recording of ${
      words.count(report.counters.events, "event")}.`;
  }

  return { start };
})();
