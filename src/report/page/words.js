// Sizes, times, shares and counts, worded as in the text report.
const words = (() => {
  // Unit, its size as a power of two, digits behind the point.
  const UNITS = [["KiB", 10, 1], ["MiB", 20, 1], ["GiB", 30, 2], ["TiB", 40, 2], ["PiB", 50, 2], ["EiB", 60, 2]];

  function size(bytes) {
    if (bytes < 0) return "−" + size(-bytes);
    if (bytes < 1024) return `${bytes} B`;
    for (const [unit, bits, digits] of UNITS) {
      const scale = 10 ** digits;
      const rounded = Math.floor(bytes / 2 ** bits * scale + 0.5);
      if (rounded < 1024 * scale) return `${(rounded / scale).toFixed(digits)} ${unit}`;
    }
    return `${bytes} B`;
  }

  function time(ns) {
    const ms = Math.floor(ns / 1e6 + 0.5), s = Math.floor(ms / 1000);
    if (ns < 1e7) return `${(Math.floor(ns / 1e5 + 0.5) / 10).toFixed(1)} ms`;
    if (ms < 1000) return `${ms} ms`;
    if (ms < 119950) return `${(Math.floor(ms / 100 + 0.5) / 10).toFixed(1)} s`;
    if (s < 2 * 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 48 * 3600) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
    return `${Math.floor(s / 86400)} days ${Math.floor(s / 3600) % 24} h`;
  }

  function share(part, whole) {
    if (!whole) return "-";
    const tenths = Math.floor(part * 1000 / whole + 0.5);
    return tenths === 0 && part > 0 ? "<0.1%" : `${(tenths / 10).toFixed(1)}%`;
  }

  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
  const count = (number, singular) => `${grouped(number)} ${singular}${number === 1 ? "" : "s"}`;
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  return { size, time, share, count, grouped, capital };
})();

// An element with a class and children; texts become text, never markup.
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function buttonLink(text, action) {
  const made = element("button", "link", text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

const byId = (id) => document.getElementById(id);
