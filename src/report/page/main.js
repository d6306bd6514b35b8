// Draws the page, the answers first.
theme.start();
summary.start();
if (data.groups.length) {
  graph.start();
  holders.start();
} else {
  byId("graphs").hidden = true;
}
lists.start();
fragmentation.start();
document.documentElement.dataset.ready = "true";
