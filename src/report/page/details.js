// Beside the graph: the chosen frame, what goes through it, and where that is allocated.
const details = (() => {
  const MOST_SITES = 12;

  function place(frame) {
    if (frame.file) return `${frame.file}${frame.line ? `:${frame.line}` : ""}`;
    return frame.module ? `${frame.module}+0x${frame.offset.toString(16)}` : `0x${frame.offset.toString(16)}`;
  }

  function frameOf(frame) {
    const name = `${frame.function || "?"}${frame.isInlined ? " (inlined)" : ""}${frame.why ? ` (${frame.why})` : ""}`;
    return element("li", frame.isOwn ? null : "faint", element("code", null, name), " ", place(frame));
  }

  function rows(pairs) {
    return element("dl", null, ...pairs.flatMap(([name, value]) => [element("dt", null, name), element("dd", null, value)]));
  }

  function figures(site) {
    const rate = data.rateOf.get(site.id);
    return rows([
      [`allocated ${data.when}`, `${words.size(site.live_bytes)} in ${words.count(site.live_blocks, "block")}`],
      ["at the peak", words.size(site.bytes_at_peak)], ["its own peak", words.size(site.peak_bytes)],
      ["allocated in all", words.size(site.allocated_bytes)],
      ["calls", `${words.grouped(site.allocs)}, ${words.grouped(site.frees)} freed`],
      ["first, last", `${words.time(site.first_time_ns)}, ${words.time(site.last_time_ns)}`],
      ...(rate ? [["growing by", `${words.size(rate)}/s`]] : []),
    ]);
  }

  // The reader's own frames, and between them runs of others to open.
  function runsOf(stack) {
    const items = [];
    let run = [];
    const close = () => {
      if (run.length === 0) return;
      const names = [...new Set(run.map((frame) => frame.folds))].slice(0, 4).join(", ");
      items.push(element("li", "faint", element("details", null,
        element("summary", null, `${words.count(run.length, "frame")} in ${names}`), element("ul", null, ...run.map(frameOf)))));
      run = [];
    };
    for (const frame of stack) {
      if (frame.folds !== null) {
        run.push(frame);
        continue;
      }
      close();
      items.push(frameOf(frame));
    }
    close();
    return items;
  }

  // Its whole stack as Python prints one.
  function oneSite(id) {
    const site = data.sites.get(id), source = data.sourceOf(id);
    const stack = element("ol", null, ...runsOf(data.stackOf(site)));
    return [
      element("h4", null, `Site ${id}: ${site.title}`), source ? element("p", "code", source) : null, figures(site),
      element("p", null, `Stack, most recent call last; ${site.api} (${site.family})`), stack,
    ];
  }

  function manySites(node) {
    const shown = node.sites.slice(0, MOST_SITES);
    return [
      element("p", null, `${words.count(node.sites.length, "site")} below it:`),
      element("ul", null, ...shown.map((id) => element("li", null, buttonLink(data.titleOf(id), () => holders.showSite(id))))),
      node.sites.length > shown.length ? element("p", null, "Zoom in to see the others.") : null,
    ];
  }

  function show(node, root, text) {
    const own = node.frames.length > 1
      ? element("details", null, element("summary", null, words.count(node.frames.length, "frame")),
                element("ol", null, ...node.frames.map(frameOf)))
      : node.frames.length ? element("p", null, place(node.frames[0])) : null;
    byId("node").replaceChildren(...[
      element("h3", null, node.title), element("p", null, `${text(node.value)}, ${words.share(node.value, root.value)} of all`),
      own, ...(node.sites.length === 1 ? oneSite(node.sites[0]) : node.sites.length ? manySites(node) : []),
    ].filter(Boolean));
  }

  return { show };
})();
