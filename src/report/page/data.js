// The report inside this page, and what is looked up in it. Numbers of sites are those of the JSON report; sites that the
// page leaves out are undefined here.
const data = (() => {
  const report = JSON.parse(byId("recording").textContent);
  const sites = new Map(report.sites.map((site) => [site.id, site]));

  // [title, function, file, line, module, offset, is Python, whose, is inlined, folds under, why it has no name]
  const frames = report.frames.map((row) => ({
    title: row[0], function: report.strings[row[1]], file: report.strings[row[2]], line: row[3],
    module: report.strings[row[4]], offset: row[5], isPython: row[6] === 1, isOwn: row[7] <= 1, isInlined: row[8] === 1,
    folds: row[9], why: row[10],
  }));

  // A site's frames, outermost first.
  function stackOf(site) {
    const stack = [];
    for (let node = site.node; node !== null && node >= 0; node = report.nodes[2 * node])
      stack.push(frames[report.nodes[2 * node + 1]]);
    return stack.reverse();
  }

  const WHEN = { exited: "at exit", killed: "when it was killed", running: "now" };
  const titleOf = (id) => (sites.has(id) ? sites.get(id).title : `site ${id}`);
  // Those that ever held memory; in others everything was refused.
  const groups = report.groups.map((group, index) => index).filter((index) => report.groups[index].allocs > 0);
  const sitesOf = (group) => report.sites.filter((site) => site.group === group);
  const peakOf = (group) => report.peaks.find((peak) => peak.group === group);
  const sourceOf = (id) => report.sources[id];
  // Bytes per second of sites that grow by themselves; and the lines of code that grow, by their titles.
  const rateOf = new Map();
  for (let i = 0; i < report.growing_sites.length; i += 2) rateOf.set(report.growing_sites[i], report.growing_sites[i + 1]);
  const growingTitles = new Set(report.growth.map((row) => titleOf(row.site)));

  // All sites with a title, in one group: what one line of the reader's code holds there.
  const lines = new Map();
  for (const site of report.sites) {
    const key = `${site.group}/${site.title}`;
    if (!lines.has(key)) lines.set(key, []);
    lines.get(key).push(site.id);
  }
  const lineOf = (id) => (sites.has(id) ? lines.get(`${sites.get(id).group}/${sites.get(id).title}`) : []);

  return { report, groups, sites, frames, stackOf, titleOf, sitesOf, peakOf, sourceOf, rateOf, growingTitles, lineOf,
           when: WHEN[report.process.end] };
})();
