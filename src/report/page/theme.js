// Light or dark: as the system is set, until the reader says otherwise.
const theme = (() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let isChosen = false;

  function set(isDark) {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    byId("theme").textContent = isDark ? "Light colours" : "Dark colours";
  }

  function start() {
    byId("theme").addEventListener("click", () => {
      isChosen = true;
      set(document.documentElement.dataset.theme !== "dark");
    });
    system.addEventListener("change", () => isChosen || set(system.matches));
    set(system.matches);
  }

  return { start };
})();
