// The icicle graph: the tree of stacks as rows of boxes, outermost call on top. A tree to screen readers and the keyboard.
const graph = (() => {
  const ROW = 22, NARROWEST = 2; // pixels; what is narrower is not drawn
  let root = null, zoomed = null, text = String, marked = null, current = null;
  const search = { test: null, sites: null };

  const isHit = (node) => marked.nodes.has(node) || (node.isTail && node.children.some(isHit));

  // What a search looks at: all names of a frame.
  const namesOfFrame = (frame) => [frame.title, frame.function, frame.file, frame.module].filter(Boolean);
  const namesOf = (node) => [node.title, ...node.frames.flatMap(namesOfFrame)];

  function walk(node, visit) {
    visit(node);
    node.children.forEach((child) => walk(child, visit));
  }

  // The nodes that match, and how much of the whole goes through them; a stack that matches twice counts once.
  function find(test) {
    const nodes = new Set();
    let value = 0;
    const visit = (node, inside) => {
      const hit = node !== root && namesOf(node).some(test);
      if (hit) nodes.add(node);
      if (hit && !inside) value += node.value;
      node.children.forEach((child) => visit(child, inside || hit));
    };
    visit(root, false);
    return { nodes, value };
  }

  // The innermost nodes through which nothing but those sites goes, and the way there.
  function findSites(ids) {
    const nodes = new Set();
    let value = 0;
    walk(root, (node) => {
      if (node === root || node.sites.length === 0) return;
      if (node.sites.every((id) => ids.has(id))) nodes.add(node);
    });
    nodes.forEach((node) => { if (!nodes.has(node.parent)) value += node.value; });
    return { nodes, value };
  }

  function mark() {
    marked = search.sites ? findSites(search.sites) : search.test ? find(search.test) : null;
    byId("matched").textContent = marked ? `${words.share(marked.value, root.value)} (${text(marked.value)}) matched` : "";
  }

  // Stands for the children that are too narrow to draw, which are its last ones; zoomed into, it shows them.
  function tailOf(node, narrow) {
    if (!node.tail || node.tail.children.length !== narrow.length) {
      node.tail = { parent: node, title: `${words.grouped(narrow.length)} narrower`, kind: "folded", isTail: true, frames: [],
                    value: d3.sum(narrow, (child) => child.value), sites: narrow.flatMap((child) => child.sites), children: narrow };
    }
    return node.tail;
  }

  // The boxes to draw: the way to the zoomed node at full width, and what is in it.
  function boxes(width) {
    const list = [...stacks.ancestors(zoomed), zoomed].map((node, depth) => ({ node, depth, from: 0, part: 1 }));
    const base = list.length - 1;
    const add = (node, depth, from, part) => {
      let at = from;
      const isWide = (child) => part * child.value / node.value * width >= NARROWEST;
      const put = (child) => {
        const share = part * child.value / node.value;
        list.push({ node: child, depth, from: at, part: share });
        if (!child.isTail) add(child, depth + 1, at, share);
        at += share;
      };
      node.children.filter(isWide).forEach(put);
      const narrow = node.children.filter((child) => !isWide(child));
      if (narrow.length && isWide(tailOf(node, narrow))) put(tailOf(node, narrow));
    };
    if (zoomed.value > 0) add(zoomed, base + 1, 0, 1);
    return list;
  }

  const label = (node) => `${node.title}, ${text(node.value)}, ${words.share(node.value, root.value)}`;

  function classOf(box, width) {
    const classes = ["frame", box.node.kind];
    if (box.part * width < 12) classes.push("narrow");
    if (marked) classes.push(isHit(box.node) ? "hit" : "missed");
    return classes.join(" ");
  }

  function draw() {
    const width = byId("graph").clientWidth, list = boxes(width);
    const join = d3.select("#graph").selectAll(".frame").data(list);
    join.exit().remove();
    join.enter().append("div").attr("role", "treeitem");
    join.attr("class", (box) => classOf(box, width))
      .attr("aria-label", (box) => label(box.node))
      .attr("title", (box) => label(box.node))
      .attr("aria-level", (box) => box.depth + 1)
      .attr("aria-expanded", (box) => (box.node.children.length ? "true" : null))
      .attr("aria-selected", (box) => String(box.node === current))
      .attr("tabindex", (box) => (box.node === (current || zoomed) ? 0 : -1))
      .style("left", (box) => `${box.from * 100}%`).style("width", (box) => `${box.part * 100}%`)
      .style("top", (box) => `${box.depth * ROW}px`)
      .text((box) => (box.part * width < 30 ? "" : `${box.node.title}  ${text(box.node.value)}`));
    byId("graph").style.height = `${(d3.max(list, (box) => box.depth) + 1) * ROW}px`;
    byId("whole-graph").disabled = zoomed === root;
    if (!byId("graph").querySelector('[tabindex="0"]')) byId("graph").firstChild.tabIndex = 0;
  }

  const boxOf = (target) => (target.classList.contains("frame") ? d3.select(target).datum() : null);
  const elementOf = (node) => [...byId("graph").children].find((child) => d3.select(child).datum().node === node);

  function focusOn(node) {
    const target = node && elementOf(node);
    if (!target) return;
    current = node;
    draw();
    elementOf(node).focus({ preventScroll: false });
    details.show(node, root, text);
  }

  function zoom(node) {
    zoomed = node;
    current = node;
    draw();
    focusOn(node);
  }

  function sibling(node, step) {
    const row = node.parent ? node.parent.children : [node];
    return row[row.indexOf(node) + step];
  }

  function onKey(event) {
    const box = boxOf(event.target);
    if (!box) return;
    const node = box.node;
    const actions = {
      ArrowDown: () => focusOn(node.children[0]), ArrowUp: () => focusOn(node.parent),
      ArrowLeft: () => focusOn(sibling(node, -1)), ArrowRight: () => focusOn(sibling(node, 1)),
      Enter: () => zoom(node), " ": () => zoom(node), Escape: () => zoom(root), Home: () => focusOn(root),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // "text", or "/regular expression/"; both whatever the case.
  function testOf(wanted) {
    const pattern = wanted.match(/^\/(.+)\/?$/);
    if (!pattern) return (name) => name.toLowerCase().includes(wanted.toLowerCase());
    const expression = new RegExp(pattern[1].replace(/\/$/, ""), "i");
    return (name) => expression.test(name);
  }

  function onSearch() {
    const wanted = byId("wanted").value;
    search.sites = null;
    search.test = null;
    try {
      search.test = wanted ? testOf(wanted) : null;
    } catch (error) {
      byId("matched").textContent = "that is no regular expression";
      return;
    }
    mark();
    draw();
  }

  // Shows a tree; what was searched for stays.
  function show(tree, wording) {
    root = zoomed = tree;
    text = wording;
    current = null;
    mark();
    draw();
    details.show(heaviest(), root, text);
  }

  // Where a reader starts: down from the root while one child has all of it.
  function heaviest() {
    let node = root;
    while (node.children.length === 1 && node.kind !== "own") node = node.children[0];
    return node;
  }

  function highlight(ids, title) {
    search.sites = ids;
    search.test = null;
    byId("wanted").value = "";
    mark();
    draw();
    byId("matched").textContent = `${title}: ${byId("matched").textContent.replace(" matched", "")}`;
    const deepest = [...marked.nodes].filter((node) => !marked.nodes.has(node.parent)).sort((a, b) => b.value - a.value)[0];
    if (deepest) details.show(deepest, root, text);
  }

  function start() {
    const node = byId("graph");
    node.addEventListener("click", (event) => {
      const box = boxOf(event.target);
      if (box) zoom(box.node);
    });
    node.addEventListener("focusin", (event) => {
      const box = boxOf(event.target);
      if (box && box.node !== current) {
        current = box.node;
        details.show(current, root, text);
      }
    });
    node.addEventListener("keydown", onKey);
    byId("wanted").addEventListener("input", onSearch);
    byId("search").addEventListener("submit", (event) => event.preventDefault());
    byId("whole-graph").addEventListener("click", () => zoom(root));
    window.addEventListener("resize", () => root && draw());
  }

  return { start, show, highlight };
})();
