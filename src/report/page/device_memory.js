// What is used of each device, and by whom: why nvidia-smi shows more than the program allocated.
const deviceMemory = (() => {
  const { report } = data;
  // A part: its name, its key at the end of the run, its key in a sample.
  const PARTS = [
    ["allocations, recorded here", "tracked_bytes", "tracked_bytes"], ["CUDA contexts", "context_bytes", "context_bytes"],
    ["kernels", "modules_bytes", "modules_bytes"], ["reserved by memory pools, in no block", "pool_unused_bytes", "pool_unused_bytes"],
    ["kept for graphs", "graph_bytes", "graph_bytes"], ["rounding to granules of 2 MiB", "granule_waste_bytes", null],
    ["other processes", "other_processes_bytes", null], ["not known", "untracked_bytes", "rest_bytes"],
    ["free", "free_bytes", "free_bytes"], ["the whole device", "total_bytes", "total_bytes"],
  ];
  const known = (value) => (value === null || value === undefined ? "" : words.size(value));

  // The device's last figures may be older than the end: then what follows from them is not known of the end.
  function table(row) {
    const isOfTheEnd = row.untracked_bytes !== null;
    const rows = PARTS.map(([name, end, sample]) => ({
      name, end: isOfTheEnd ? row[end] : null, peak: row.peak && sample ? row.peak[sample] : null,
    })).filter((part) => part.end || part.peak);
    const column = (title, key) => ({ title, value: (part) => part[key] || 0, show: (part) => known(part[key]) });
    return sortableTable({
      caption: `Device ${row.device}, as the driver tells`, rows,
      columns: [
        { title: "Memory", isText: true, value: (part) => part.name },
        column(`when it was fullest, at ${words.time(row.peak.time_ns)}`, "peak"),
        ...(isOfTheEnd ? [column(data.when, "end")] : []),
      ],
    });
  }

  const make = () => element("div", null, ...report.memory_map.filter((row) => row.total_bytes !== null && row.peak)
    .sort((a, b) => a.device - b.device).map(table));

  return { make };
})();
