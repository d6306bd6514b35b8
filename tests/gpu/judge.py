"""judge.py NAME STATUS FOLDER: whether a traced program ended well and all that was counted twice agreed. One line."""
import json
import pathlib
import re
import sys

name, status, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])


def lines(suffix):
    text = (folder / f"{name}{suffix}").read_text(errors="replace")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def size(count):
    return f"{count / (1 << 20):.1f} MiB"


def at(report, way):
    """The figure at the end of `way` (figures.compare_in_report); None where there is no such row."""
    for step in way:
        if report is None:
            return None
        report = next((row for row in report if step.items() <= row.items()), None) if isinstance(step, dict) else report[step]
    return report


wrong, said = [], []
if status != 0:
    wrong.append(f"ended with {status}")
found = {re.search(r"\.(\d+)\.json$", path.name): path for path in folder.glob(f"{name}.*.json")}
reports = {int(match[1]): json.loads(path.read_text()) for match, path in found.items() if match}
for figure in (line for line in lines(".out") if "figure" in line):
    ours = figure["ours"] if "ours" in figure else at(reports.get(figure["pid"]), figure["way"])
    over = None if ours is None else ours - figure["own"]
    text = f"{figure['figure']} {size(figure['own'])}"
    if over is None:
        text += ", not in the report"
    elif over:
        text += f", ours {over:+d} bytes"
    (said if over is not None and abs(over) <= figure["slack"] else wrong).append(text)
if not said and not wrong:
    wrong.append("nothing was compared")
if not reports:
    wrong.append("no report")
for report in reports.values():
    if report["counters"]["dropped_events"]:
        wrong.append(f"{report['counters']['dropped_events']} events were dropped")
    for row in report["memory_map"]:
        used = (row["total_bytes"] or 0) - (row["free_bytes"] or 0)
        if used and row["tracked_bytes"] > used:
            wrong.append(f"device {row['device']}: {size(row['tracked_bytes'])} tracked, the driver has {size(used)} in use")
untraced, traced = ([line["step_seconds"] * 1e6 for line in lines(suffix) if "step_seconds" in line]
                    for suffix in (".untraced.out", ".out"))
if untraced and traced:
    said.append(f"a step {min(untraced):.1f} µs, traced {min(traced):.1f} µs: {min(traced) - min(untraced):+.1f} µs")
print(f"{'FAILED' if wrong else 'ok    '} {name:28} {'; '.join(wrong + said)}")
sys.exit(bool(wrong))
