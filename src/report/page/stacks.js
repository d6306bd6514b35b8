// The tree behind the graph: stacks of sites, outermost call on top, each frame as wide as what was allocated through it.
const stacks = (() => {
  const folding = (frame, site) => frame.folds !== null && frame !== data.frames[site.title_frame];

  // The steps of a site's stack: a frame each or, where folded, a run of frames that are not the reader's own.
  function stepsOf(site, everyFrame) {
    const steps = [];
    let run = null;
    for (const frame of data.stackOf(site)) {
      if (everyFrame || !folding(frame, site)) {
        run = null;
        steps.push({ key: frame, title: frame.title, frames: [frame], kind: kindOf(frame) });
        continue;
      }
      if (!run) {
        run = { names: new Set(), frames: [], kind: "folded" };
        steps.push(run);
      }
      run.names.add(frame.folds);
      run.frames.push(frame);
    }
    for (const step of steps) {
      if (!step.names) continue;
      const names = [...step.names];
      step.title = `… ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""}`;
      step.key = step.title;
    }
    if (steps.length === 0) steps.push({ key: "none", title: "no stack recorded", frames: [], kind: "folded" });
    steps.push({ key: `api ${site.api}`, title: site.api, frames: [], kind: "api" });
    return steps;
  }

  function kindOf(frame) {
    if (!frame.isOwn) return "library";
    return frame.isPython ? "own" : "native";
  }

  const made = (parent, step) => ({
    parent, title: step.title, kind: step.kind, frames: step.frames, value: 0, sites: [], children: new Map(),
  });

  // `valueOf`: what a site counts for. `total`: of all sites, also those that the page does not list.
  function tree(sites, valueOf, total, everyFrame) {
    const root = made(null, { title: "all", kind: "root", frames: [] });
    let listed = 0;
    for (const site of sites) {
      const value = valueOf(site);
      if (!(value > 0)) continue;
      listed += value;
      let node = root;
      for (const step of stepsOf(site, everyFrame)) {
        if (!node.children.has(step.key)) node.children.set(step.key, made(node, step));
        node = node.children.get(step.key);
        node.value += value;
        node.sites.push(site.id);
      }
      root.sites.push(site.id);
    }
    root.value = Math.max(total, listed);
    if (root.value > listed) {
      const rest = made(root, { title: "sites not listed in this page", kind: "rest", frames: [] });
      rest.value = root.value - listed;
      root.children.set("rest", rest);
    }
    sortChildren(root);
    return root;
  }

  function sortChildren(node) {
    node.children = [...node.children.values()].sort((a, b) => b.value - a.value);
    node.children.forEach(sortChildren);
  }

  const ancestors = (node) => (node.parent ? [...ancestors(node.parent), node.parent] : []);

  return { tree, ancestors };
})();
