// What the graph shows: which memory, measured how. Everything on the page that says "show me" comes here.
const holders = (() => {
  const { report } = data;
  // How sites are measured: what one counts for, and what all of the group's count for together.
  const MEASURES = [
    { id: "live", title: `allocated ${data.when}`, of: (site) => site.live_bytes, whole: (group) => group.live_bytes },
    { id: "peak", title: "at the peak", of: (site) => site.bytes_at_peak, whole: (group) => group.peak_bytes },
    { id: "moment", title: "at the chosen moment", of: (site) => state.moment.held.get(site.id) || 0,
      whole: () => state.moment.bytes },
    { id: "allocated", title: "allocated in all", of: (site) => site.allocated_bytes, whole: (group) => group.allocated_bytes },
    { id: "calls", title: "calls", of: (site) => site.allocs, whole: (group) => group.allocs, isCount: true },
  ];
  const state = { group: 0, measure: MEASURES[0], moment: null, everyFrame: false };

  const text = (value) => (state.measure.isCount ? words.count(value, "call") : words.size(value));

  function draw() {
    const group = report.groups[state.group], measure = state.measure;
    const root = stacks.tree(data.sitesOf(state.group), measure.of, measure.whole(group), state.everyFrame);
    const when = measure.id === "moment" ? `at ${words.time(state.moment.time)}` : measure.title;
    root.title = `${group.name}, ${when}`;
    byId("whole").textContent = `${words.capital(group.name)}, ${when}: ${text(root.value)}`;
    graph.show(root, text);
    for (const input of document.querySelectorAll("#measures input")) {
      input.checked = input.value === measure.id;
      input.disabled = input.value === "moment" && !state.moment;
    }
  }

  function setMeasure(id) {
    state.measure = MEASURES.find((measure) => measure.id === id);
    draw();
  }

  // The group's picture; the moment chosen in another one's is no moment of it.
  function setGroup(group) {
    state.group = group;
    state.moment = null;
    if (state.measure.id === "moment") state.measure = MEASURES[1];
    byId("group").value = String(group);
    timeline.show(group);
  }

  function showGroup(group) {
    setGroup(group);
    draw();
    byId("graphs").scrollIntoView();
  }

  function showPeak(group) {
    if (group !== state.group) setGroup(group);
    setMeasure("peak");
    byId("holders-title").scrollIntoView();
  }

  function showMoment(index) {
    state.moment = timeline.momentAt(index);
    setMeasure("moment");
  }

  // Sites in the graph, by the measure at hand if they count for anything in it.
  function highlight(ids, title) {
    const sites = ids.map((id) => data.sites.get(id));
    const counts = (measure) => measure.id !== "moment" && sites.some((site) => measure.of(site) > 0);
    if (!sites.some((site) => state.measure.of(site) > 0)) state.measure = MEASURES.find(counts) || state.measure;
    draw();
    graph.highlight(new Set(ids), title);
    byId("holders-title").scrollIntoView();
  }

  function showLine(id) {
    const site = data.sites.get(id);
    if (!site || !data.groups.includes(site.group)) return;
    if (site.group !== state.group) setGroup(site.group);
    highlight(data.lineOf(id), site.title);
  }

  function showSite(id) {
    const site = data.sites.get(id);
    if (!data.groups.includes(site.group)) return;
    if (site.group !== state.group) setGroup(site.group);
    highlight([id], site.title);
  }

  function showTitle(group, title) {
    const site = report.sites.find((one) => one.group === group && one.title === title);
    if (site) showLine(site.id);
  }

  function addMeasures() {
    for (const measure of MEASURES) {
      const input = element("input");
      input.type = "radio";
      input.name = "measure";
      input.value = measure.id;
      input.addEventListener("change", () => setMeasure(measure.id));
      byId("measures").append(element("label", null, input, ` ${measure.title}`));
    }
  }

  function addGroups() {
    data.groups.forEach((index) => {
      const group = report.groups[index];
      const option = element("option", null, `${group.name} (peak ${words.size(group.peak_bytes)})`);
      option.value = String(index);
      byId("group").append(option);
    });
    byId("group").addEventListener("change", (event) => {
      setGroup(Number(event.target.value));
      draw();
    });
  }

  // Where tensors are known they say more than what the framework took from the driver.
  function firstGroup() {
    const isTensors = (index) => report.groups[index].layer === "framework" && report.groups[index].space === "device";
    const tensors = data.groups.find(isTensors);
    return tensors === undefined ? data.groups[0] : tensors;
  }

  function start() {
    addMeasures();
    addGroups();
    timeline.start(showMoment);
    byId("every-frame").addEventListener("change", (event) => {
      state.everyFrame = event.target.checked;
      draw();
    });
    setGroup(firstGroup());
    const isLeft = report.groups[state.group].live_bytes > 0 && report.ooms.length === 0;
    setMeasure(isLeft ? "live" : "peak");
  }

  return { start, showGroup, showPeak, showLine, showSite, showTitle };
})();
