// The stretch of the run that the timeline shows, by buttons, keys and dragging: never less than a few of the stretches that
// the run was recorded in, since there is nothing more to see in those.
const span = (() => {
  const FEW = 4;
  const { origin_ns: origin, width_ns: width } = data.report.timeline;
  const whole = [origin, Math.max(data.report.process.duration_ns, origin + 1)];
  let shown = whole, onChange = () => {}, middle = () => null;

  const length = () => shown[1] - shown[0];
  const isWhole = () => length() >= whole[1] - whole[0];
  const least = Math.min(FEW * width, whole[1] - whole[0]);

  // "1:59:05.2"
  function clock(ns, digits) {
    const seconds = ns / 1e9, hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
    const rest = (seconds % 60).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
    return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
  }

  // How exact words.time() is there.
  const exactness = (ns) => (ns < 1e7 ? 1e5 : ns < 1e9 ? 1e6 : ns < 120e9 ? 1e8 : ns < 7200e9 ? 1e9 : ns < 172800e9 ? 60e9 : 3600e9);

  // Times that must be told so exactly: in words where these are, by figures where they are not.
  function wordings(times, exact) {
    if (exactness(times[times.length - 1]) <= exact) return times.map(words.time);
    const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(exact))));
    const latest = times[times.length - 1];
    if (latest < 1e9) return times.map((ns) => `${(ns / 1e6).toFixed(Math.max(0, digits - 3))} ms`);
    if (latest < 120e9) return times.map((ns) => `${(ns / 1e9).toFixed(digits)} s`);
    return times.map((ns) => clock(ns, digits));
  }

  function tell() {
    const [from, to] = wordings(shown, length() / 50);
    byId("span-shown").textContent = isWhole() ? "" : `${from} to ${to}, ${words.share(length(), whole[1] - whole[0])} of the run`;
    byId("zoom-in").disabled = length() <= least;
    byId("zoom-out").disabled = byId("whole-run").disabled = isWhole();
    byId("earlier").disabled = shown[0] <= whole[0];
    byId("later").disabled = shown[1] >= whole[1];
  }

  // Whatever was asked for, inside the run and not too short.
  function set(from, to) {
    const all = whole[1] - whole[0];
    const wanted = to - from > 0.999 * all ? all : Math.max(to - from, least); // what was zoomed in and out is whole again
    const start = Math.min(Math.max((from + to - wanted) / 2, whole[0]), whole[1] - wanted);
    shown = [start, start + wanted];
    tell();
    onChange();
  }

  // Around the chosen moment where that is in sight.
  function zoom(factor) {
    const at = middle();
    const centre = at !== null && at >= shown[0] && at <= shown[1] ? at : (shown[0] + shown[1]) / 2;
    const before = (centre - shown[0]) * factor;
    set(centre - before, centre - before + length() * factor);
  }

  const move = (part) => set(shown[0] + part * length(), shown[1] + part * length());
  const reset = () => set(...whole);

  // So that it is in sight.
  function include(time) {
    if (time < shown[0] || time > shown[1]) set(time - length() / 2, time + length() / 2);
  }

  function start(whenChanged, middleOf) {
    const ACTIONS = { "zoom-in": () => zoom(1 / 3), "zoom-out": () => zoom(3), earlier: () => move(-0.5), later: () => move(0.5),
                      "whole-run": reset };
    for (const [id, action] of Object.entries(ACTIONS)) byId(id).addEventListener("click", action);
    tell();
    onChange = whenChanged;
    middle = middleOf;
  }

  return { start, set, zoom, reset, include, wordings, domain: () => shown };
})();
