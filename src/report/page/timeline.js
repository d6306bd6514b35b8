// The picture of memory over time: a layer for each of the lines of code that held most, the rest on top of them; phases
// below, out-of-memory moments above. Every edge is a moment that was recorded.
const timeline = (() => {
  const { report } = data;
  const LAYERS = 9, LANES = 8, LANE = 17, HEIGHT = 260;
  const MARGIN = { left: 74, right: 12, top: 18, bottom: 22 };
  let shown = null, onChoice = () => {};

  // A space's moments, [{ time, bytes, changes }].
  function historyOf(group) {
    const space = report.timeline.spaces.find((one) => one.group === group);
    const moments = (space ? space.moments : []).map((row) => ({ time: row[0], bytes: row[1], changes: row.slice(2) }));
    if (moments.length === 0 || moments[0].time > report.timeline.origin_ns)
      moments.unshift({ time: report.timeline.origin_ns, bytes: 0, changes: [] });
    return { moments, least: space ? space.least : [] };
  }

  // Visits them in turn, with what each site then held.
  function replay(moments, visit) {
    const held = new Map();
    moments.forEach((moment, index) => {
      for (let i = 0; i < moment.changes.length; i += 2) {
        const bytes = (held.get(moment.changes[i]) || 0) + moment.changes[i + 1];
        if (bytes > 0) held.set(moment.changes[i], bytes);
        else held.delete(moment.changes[i]);
      }
      visit(moment, index, held);
    });
  }

  // What each site held at a moment of the picture: { bytes, time, held: Map }.
  function momentAt(index) {
    let found = null;
    replay(shown.moments.slice(0, index + 1), (moment, at, held) => {
      if (at === index) found = { bytes: moment.bytes, time: moment.time, held };
    });
    return found;
  }

  const endOf = () => Math.max(report.process.duration_ns, report.timeline.origin_ns + 1);

  function byTitle(held) {
    const sums = new Map();
    held.forEach((bytes, id) => sums.set(data.titleOf(id), (sums.get(data.titleOf(id)) || 0) + bytes));
    return sums;
  }

  // The lines of code with a layer: those that held most at the fullest moment, and most over all of the time.
  function chooseTitles(moments) {
    const overTime = new Map();
    let fullest = null;
    replay(moments, (moment, index, held) => {
      const until = index + 1 < moments.length ? moments[index + 1].time : endOf();
      const sums = byTitle(held);
      sums.forEach((bytes, title) => overTime.set(title, (overTime.get(title) || 0) + bytes * (until - moment.time)));
      if (!fullest || moment.bytes > fullest.bytes) fullest = { bytes: moment.bytes, sums };
    });
    const allTime = d3.sum([...overTime.values()]) || 1;
    const score = (title) => overTime.get(title) / allTime + (fullest.sums.get(title) || 0) / (fullest.bytes || 1);
    return [...overTime.keys()].sort((a, b) => score(b) - score(a)).slice(0, LAYERS);
  }

  // Layers as [{ title, points: [[from, to]] }], the bottom one first.
  function stack(moments, titles) {
    const layers = [...titles, null].map((title) => ({ title, points: [] }));
    replay(moments, (moment, index, held) => {
      const sums = byTitle(held);
      let base = 0;
      for (const layer of layers) {
        const bytes = layer.title === null ? Math.max(0, moment.bytes - base) : sums.get(layer.title) || 0;
        layer.points.push([base, base + bytes]);
        base += bytes;
      }
    });
    return layers.filter((layer) => layer.points.some(([from, to]) => to > from));
  }

  const isOnDevice = (oom, group) => report.groups[oom.group] && report.groups[oom.group].device === report.groups[group].device;

  function lanes() {
    return report.timeline.phases.filter((row) => report.phases[row.phase]).slice(0, LANES)
      .map((row) => ({ name: report.phases[row.phase].name, depth: report.phases[row.phase].depth, runs: row.runs }));
  }

  // Ticks at round numbers of the unit that the largest figure has.
  function ticks(most) {
    const unit = 2 ** (10 * Math.floor(Math.log2(Math.max(most, 1)) / 10));
    return d3.scale.linear().domain([0, most / unit]).ticks(4).map((value) => value * unit);
  }

  function scales(width, most) {
    return {
      x: d3.scale.linear().domain(span.domain()).range([MARGIN.left, width - MARGIN.right]),
      y: d3.scale.linear().domain([0, most * 1.04 || 1]).range([MARGIN.top + HEIGHT, MARGIN.top]),
    };
  }

  const isSeen = (time) => time >= span.domain()[0] && time <= span.domain()[1];
  const inSight = (time) => Math.min(Math.max(time, span.domain()[0]), span.domain()[1]);

  // What is drawn of each column of pixels in which something happened: [x, index of a moment]. Its fullest moment fills the
  // column, however short it was, and what came last goes on behind it. What was there before goes on from the left edge.
  function columns(x, moments) {
    const [from, to] = span.domain(), after = d3.bisector((moment) => moment.time);
    const drawn = [], begin = after.left(moments, from), end = after.right(moments, to);
    if (begin > 0) drawn.push([x(from), begin - 1]);
    for (let first = begin, last; first < end; first = last + 1) {
      const column = Math.floor(x(moments[first].time));
      let fullest = last = first;
      while (last + 1 < end && Math.floor(x(moments[last + 1].time)) === column) {
        last++;
        if (moments[last].bytes > moments[fullest].bytes) fullest = last;
      }
      drawn.push([column, fullest]);
      if (last !== fullest) drawn.push([column + 1, last]);
    }
    drawn.push([x(to), Math.max(0, end - 1)]);
    return drawn;
  }

  function drawLayers(svg, x, y, moments, layers) {
    const drawn = columns(x, moments);
    const area = (layer) => d3.svg.area().interpolate("step-after").x((place) => place[0])
      .y0((place) => y(layer.points[place[1]][0])).y1((place) => y(layer.points[place[1]][1]))(drawn);
    svg.append("g").selectAll("path").data(layers).enter().append("path")
      .attr("class", (layer, index) => `layer fill-${layer.title === null ? "others" : index}`).attr("d", area)
      .append("title").text((layer) => layer.title || "all other lines");
  }

  // A veil over what was not there throughout: from the least of each stretch up. Where nothing happened there is none.
  function drawVeil(svg, x, y, least) {
    const { origin_ns: origin, width_ns: width } = report.timeline;
    const points = [];
    for (let i = 0; i < least.length; i += 2) {
      const from = inSight(origin + least[i] * width), to = inSight(Math.min(origin + (least[i] + 1) * width, endOf()));
      if (from >= to) continue;
      points.push([x(from), y(least[i + 1])], [x(to), MARGIN.top]);
    }
    svg.append("path").attr("class", "veil").datum(points)
      .attr("d", d3.svg.area().interpolate("step-after").x((point) => point[0]).y0((point) => point[1]).y1(MARGIN.top));
  }

  function drawAxes(svg, x, y, width, most) {
    const times = x.ticks(Math.max(2, Math.floor(width / 150))), texts = span.wordings(times, times[1] - times[0]);
    svg.append("g").attr("class", "axis").attr("transform", `translate(0,${MARGIN.top + HEIGHT})`)
      .call(d3.svg.axis().scale(x).orient("bottom").tickValues(times).tickFormat((ns, index) => texts[index]));
    svg.append("g").attr("class", "axis").attr("transform", `translate(${MARGIN.left},0)`)
      .call(d3.svg.axis().scale(y).orient("left").tickValues(ticks(most)).tickFormat((bytes) => words.size(bytes)));
  }

  function drawPeak(svg, x, y, group) {
    const peak = data.peakOf(group);
    if (!peak) return;
    svg.append("line").attr("class", "peak").attr({ x1: x.range()[0], x2: x.range()[1], y1: y(peak.bytes), y2: y(peak.bytes) });
    const isEarlier = peak.time_ns < report.timeline.origin_ns;
    const at = Math.min(Math.max(x(peak.time_ns), x.range()[0] + 90), x.range()[1] - 90);
    svg.append("text").attr({ class: "peak-label", x: at, y: y(peak.bytes) - 4, "text-anchor": "middle" })
      .text(`peak ${words.size(peak.bytes)} at ${words.time(peak.time_ns)}${isEarlier ? ", before this picture begins" : ""}`);
  }

  function drawOoms(svg, x, group) {
    const marks = svg.append("g").selectAll("g").data(report.ooms.filter((oom) => isOnDevice(oom, group) && isSeen(oom.time_ns))).enter().append("g");
    marks.append("line").attr("class", "oom-line")
      .attr({ x1: (oom) => x(oom.time_ns), x2: (oom) => x(oom.time_ns), y1: MARGIN.top, y2: MARGIN.top + HEIGHT });
    marks.append("path").attr("class", "oom")
      .attr("d", (oom) => `M${x(oom.time_ns)},${MARGIN.top} l-6,-10 h12 z`)
      .append("title").text((oom) => `out of memory at ${words.time(oom.time_ns)}: ${words.size(oom.requested_bytes)} asked for`);
  }

  function drawLanes(svg, x) {
    const { origin_ns: origin, width_ns: width } = report.timeline;
    lanes().forEach((lane, index) => {
      const top = MARGIN.top + HEIGHT + MARGIN.bottom + index * LANE;
      const runs = [];
      for (let i = 0; i < lane.runs.length; i += 2)
        runs.push([origin + lane.runs[i] * width, Math.min(origin + (lane.runs[i] + lane.runs[i + 1]) * width, endOf())]);
      const seen = runs.filter((run) => run[1] >= span.domain()[0] && run[0] <= span.domain()[1])
        .map((run) => run.map(inSight));
      svg.append("g").selectAll("rect").data(seen).enter().append("rect")
        .attr("class", lane.depth ? "phase inner" : "phase")
        .attr({ x: (run) => x(run[0]), width: (run) => Math.max(1, x(run[1]) - x(run[0])), y: top + 10, height: 4 });
      if (seen.length) svg.append("text").attr({ x: x(seen[0][0]), y: top + 7 }).text(lane.name);
    });
  }

  // The moment that held at a time: the last one not after it.
  const indexAt = (time) => Math.max(0, d3.bisector((moment) => moment.time).right(shown.moments, time) - 1);

  function describe(index) {
    const moment = momentAt(index);
    const sums = [...byTitle(moment.held)].sort((a, b) => b[1] - a[1]).slice(0, 3);
    const held = sums.map(([title, bytes]) => `${title} ${words.size(bytes)}`).join("; ");
    return `At ${words.time(moment.time)}: ${words.size(moment.bytes)}${held ? `, most by ${held}` : ""}`;
  }

  const timeOfMoment = (index) => Math.max(shown.moments[index].time, report.timeline.origin_ns);

  function place(line, index) {
    const time = timeOfMoment(index), at = shown.x(time);
    line.attr({ x1: at, x2: at, y1: MARGIN.top, y2: MARGIN.top + HEIGHT }).style("display", isSeen(time) ? null : "none");
  }

  function showChoice() {
    if (shown.chosen === null) {
      shown.choice.style("display", "none");
      return;
    }
    place(shown.choice, shown.chosen);
    const slider = shown.catcher.node();
    slider.setAttribute("aria-valuenow", shown.chosen);
    slider.setAttribute("aria-valuetext", describe(shown.chosen));
    byId("reading").textContent = describe(shown.chosen);
  }

  function choose(index) {
    shown.chosen = Math.min(Math.max(index, 0), shown.moments.length - 1);
    if (!isSeen(timeOfMoment(shown.chosen))) {
      const hadFocus = document.activeElement === shown.catcher.node();
      span.include(timeOfMoment(shown.chosen));
      if (hadFocus) shown.catcher.node().focus();
    }
    showChoice();
    onChoice(shown.chosen);
  }

  const ZOOM_KEYS = { "+": () => span.zoom(1 / 3), "=": () => span.zoom(1 / 3), "-": () => span.zoom(3), 0: () => span.reset() };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (ZOOM_KEYS[event.key]) {
      event.preventDefault();
      ZOOM_KEYS[event.key]();
      shown.catcher.node().focus();
      return;
    }
    const last = shown.moments.length - 1, from = shown.chosen === null ? last : shown.chosen;
    const peak = d3.max(shown.moments, (moment) => moment.bytes);
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, PageUp: from - 25, PageDown: from + 25, Home: 0, End: last,
                 p: shown.moments.findIndex((moment) => moment.bytes === peak) }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  }

  function addCatcher(svg, x, width) {
    const timeOf = (event) => x.invert(event.clientX - svg.node().getBoundingClientRect().left);
    const catcher = svg.append("rect").attr("class", "catcher")
      .attr({ x: MARGIN.left, y: 0, width: Math.max(0, width - MARGIN.left - MARGIN.right), height: MARGIN.top + HEIGHT,
              tabindex: 0, role: "slider", "aria-label": "Moment on the timeline", "aria-valuemin": 0,
              "aria-valuemax": shown.moments.length - 1, "aria-valuenow": shown.moments.length - 1,
              "aria-valuetext": "no moment chosen" });
    const node = catcher.node();
    let began = null; // the time where a drag began
    const isDrag = (event) => began !== null && Math.abs(x(began) - x(timeOf(event))) > 5;
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      began = timeOf(event);
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointerup", (event) => {
      const ends = began === null ? null : [began, timeOf(event)].sort((a, b) => a - b), isStretch = isDrag(event);
      began = null;
      shown.stretch.style("display", "none");
      if (ends && isStretch) span.set(inSight(ends[0]), inSight(ends[1]));
      else if (ends) choose(indexAt(ends[0]));
    });
    node.addEventListener("click", (event) => { // without a pointer: assistive technology's
      if (event.detail === 0) choose(indexAt(timeOf(event)));
    });
    node.addEventListener("pointercancel", () => {
      began = null;
      shown.stretch.style("display", "none");
    });
    node.addEventListener("pointermove", (event) => {
      if (isDrag(event)) {
        const [from, to] = [began, timeOf(event)].map((time) => x(inSight(time))).sort((a, b) => a - b);
        shown.stretch.attr({ x: from, width: to - from, y: MARGIN.top, height: HEIGHT }).style("display", null);
      }
      const index = indexAt(timeOf(event));
      place(shown.hover, index);
      byId("reading").textContent = describe(index);
    });
    node.addEventListener("pointerleave", () => {
      shown.hover.style("display", "none");
      byId("reading").textContent = shown.chosen === null ? "" : describe(shown.chosen);
    });
    node.addEventListener("keydown", onKey);
    return catcher;
  }

  function draw() {
    const width = byId("timeline").clientWidth;
    const height = MARGIN.top + HEIGHT + MARGIN.bottom + lanes().length * LANE + 6;
    const most = Math.max(d3.max(shown.moments, (moment) => moment.bytes) || 0,
                          (data.peakOf(shown.group) || { bytes: 0 }).bytes);
    const { x, y } = scales(width, most);
    byId("timeline").replaceChildren();
    const svg = d3.select("#timeline").append("svg").attr({ width, height, viewBox: `0 0 ${width} ${height}` });
    drawLayers(svg, x, y, shown.moments, shown.layers);
    drawVeil(svg, x, y, shown.least);
    drawAxes(svg, x, y, width, most);
    drawOoms(svg, x, shown.group);
    drawPeak(svg, x, y, shown.group);
    drawLanes(svg, x);
    shown.x = x;
    shown.stretch = svg.append("rect").attr("class", "stretch").style("display", "none");
    shown.hover = svg.append("line").attr("class", "hover").style("display", "none");
    shown.choice = svg.append("line").attr("class", "moment");
    shown.catcher = addCatcher(svg, x, width);
    showChoice();
  }

  function showLegend() {
    byId("legend").replaceChildren(...shown.layers.map((layer, index) => {
      const swatch = element("span", `swatch fill-${layer.title === null ? "others" : index}`);
      const name = layer.title === null ? "all other lines"
        : buttonLink(layer.title, () => holders.showTitle(shown.group, layer.title));
      return element("li", null, swatch, name);
    }));
  }

  function showNotes() {
    const { since_ns: since, width_ns: width, incomplete, phases, sites_of_a_moment: named } = report.timeline;
    const hidden = phases.length - lanes().length;
    const stretch = width < 1e5 ? `${Math.ceil(width / 1000)} µs` : words.time(width);
    byId("timeline-notes").textContent = [
      since ? `Older events were dropped from the recording: the picture begins at ${words.time(since)}.` : null,
      `The run is drawn in stretches of ${stretch}; of each, its fullest moment and its last one, exactly.`,
      "Pale is what was not there all through a stretch.",
      shown.moments.length > 2 && d3.max(shown.moments, (moment) => moment.changes.length) / 2 >= named
        ? `At a moment at most ${named} sites are told apart.` : null,
      incomplete ? "Memory ran out while it was made: some of it is missing." : null,
      hidden > 0 ? `${hidden} more phases are in the table below.` : null,
    ].filter(Boolean).join(" ");
  }

  function show(group) {
    const history = historyOf(group);
    const layers = stack(history.moments, chooseTitles(history.moments));
    shown = { group, moments: history.moments, least: history.least, layers, chosen: null };
    byId("reading").textContent = "";
    draw();
    showLegend();
    showNotes();
  }

  function start(whenChosen) {
    onChoice = whenChosen;
    span.start(draw, () => (shown && shown.chosen !== null ? timeOfMoment(shown.chosen) : null));
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (shown && window.innerWidth !== width) draw();
      width = window.innerWidth;
    });
  }

  return { start, show, momentAt };
})();
