// Light or dark: as the system is set, until the reader says otherwise.
const theme = (() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";

  function show() {
    byId("theme").textContent = isDark() ? "Light colours" : "Dark colours";
  }

  function start() {
    byId("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      show();
    });
    system.addEventListener("change", show);
    show();
  }

  return { start };
})();
