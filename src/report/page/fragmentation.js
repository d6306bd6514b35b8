// The map of memory that is reserved and not in use: each segment drawn as long as it is, and the lines of code that keep
// it from being given back.
const fragmentation = (() => {
  const { report } = data;
  const CLASSES = { "#": "full", "+": "most", "-": "some", ".": "free" };
  const SHOWN = 60, HEIGHT = 16, NARROWEST = 20, WIDEST = 360;
  const drawn = (node, name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    node.append(made);
    return made;
  };

  // Equal neighbours are one rectangle.
  function segment(row, largest) {
    const width = Math.max(NARROWEST, Math.round(WIDEST * row.bytes / largest)), cell = width / row.map.length;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const label = `${words.size(row.bytes)} at 0x${row.address.toString(16)}: ${words.size(row.allocated_bytes)} in ${
      words.count(row.blocks, "block")}, ${words.size(row.stranded_bytes)} stranded`;
    for (const [key, value] of Object.entries({ width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
                                                "aria-label": label, preserveAspectRatio: "none" })) svg.setAttribute(key, value);
    drawn(svg, "title", {}).textContent = label;
    for (const run of row.map.matchAll(/(.)\1*/g))
      drawn(svg, "rect", { class: CLASSES[run[1]], x: run.index * cell, y: 0, width: run[0].length * cell, height: HEIGHT });
    return svg;
  }

  function layout(title, row) {
    if (row.reserved_bytes === 0) return null;
    const free = row.free_bytes ? `${words.size(row.free_bytes)} free: ${words.size(row.releasable_bytes)} can be given back, ${
      words.size(row.stranded_bytes)} lie between living blocks and cannot; the largest free block is ${
      words.size(row.largest_free_bytes)}` : "nothing free";
    const largest = d3.max(row.segments, (one) => one.bytes);
    const segments = element("div", "segments", ...row.segments.slice(0, SHOWN).map((one) => segment(one, largest)));
    return element("div", null, element("h3", null, title),
      element("p", null, `${words.size(row.reserved_bytes)} reserved in ${words.count(row.segment_count, "segment")}, ${
        words.size(row.allocated_bytes)} allocated in ${words.count(row.allocated_blocks, "block")}, ${free}.`),
      segments,
      row.segment_count > SHOWN ? element("p", "hint", `The ${SHOWN} with most stranded memory are drawn.`) : null,
      row.pinned.length ? pinners(row) : null);
  }

  function pinners(row) {
    return sortableTable({
      caption: "Lines of code whose living blocks strand it", rows: row.pinned,
      columns: [
        { title: "Line of code", isText: true, value: (one) => data.titleOf(one.site),
          show: (one) => buttonLink(data.titleOf(one.site), () => holders.showLine(one.site)) },
        { title: "Strands", value: (one) => one.stranded_bytes, show: (one) => words.size(one.stranded_bytes) },
        { title: "by blocks", value: (one) => one.blocks, show: (one) => words.grouped(one.blocks) },
      ],
    });
  }

  function pools(rows) {
    return sortableTable({
      caption: "Memory pools", rows,
      columns: [
        { title: "Pool", isText: true, value: (row) => `0x${row.handle.toString(16)}` },
        { title: "Reserved", value: (row) => row.reserved_bytes, show: (row) => words.size(row.reserved_bytes) },
        { title: "Used", value: (row) => row.used_bytes, show: (row) => words.size(row.used_bytes) },
        { title: "Kept unused", value: (row) => row.kept_bytes, show: (row) => words.size(row.kept_bytes) },
      ],
    });
  }

  function device(row) {
    const parts = [];
    for (const framework of row.frameworks) {
      if (framework.at_peak)
        parts.push(layout(`${framework.name} on device ${row.device} at the device's peak, ${
          words.time(framework.at_peak.time_ns)}`, framework.at_peak));
      parts.push(layout(`${framework.name} on device ${row.device} ${data.when}`, framework));
    }
    const waste = row.live_bytes ? element("p", null, `Device ${row.device} ${data.when}: ${words.size(row.live_bytes)} live keep ${
      words.size(row.footprint_bytes)} of the driver's 2 MiB granules: ${
      row.waste_bytes ? `${words.size(row.waste_bytes)} (${words.share(row.waste_bytes, row.footprint_bytes)})` : "nothing"} lost.`) : null;
    return [waste, ...parts, row.pools.length ? pools(row.pools) : null].filter(Boolean);
  }

  function start() {
    const parts = report.fragmentation.flatMap(device);
    if (parts.length === 0) return;
    const heading = element("h2", null, "Fragmentation");
    heading.id = "fragmentation-title";
    const key = parts.some((part) => part.querySelector && part.querySelector(".segments"))
      ? element("p", "hint", "Each bar is one segment that a framework took from the driver, as long as it is large: dark is allocated, "
                             + "lighter is partly, empty is free.") : null;
    byId("fragmentation").append(...[heading, key, ...parts].filter(Boolean));
  }

  return { start };
})();
