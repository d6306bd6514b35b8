"""judge.py NAME STATUS FOLDER: whether a traced program ended well and all that was counted twice agreed. One line."""
import json
import pathlib
import sys

name, status, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])


def lines(suffix):
    text = (folder / f"{name}{suffix}").read_text(errors="replace")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def size(count):
    return f"{count / (1 << 20):.1f} MiB"


wrong, said = [], []
if status != 0:
    wrong.append(f"ended with {status}")
for figure in (line for line in lines(".out") if "figure" in line):
    over = figure["ours"] - figure["own"]
    text = f"{figure['figure']} {size(figure['own'])}" + (f", ours {over:+d} bytes" if over else "")
    (said if abs(over) <= figure["slack"] else wrong).append(text)
if not said and not wrong:
    wrong.append("nothing was compared")
reports = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name}.*.json"))]
if not reports:
    wrong.append("no report")
for report in reports:
    if report["counters"]["dropped_events"]:
        wrong.append(f"{report['counters']['dropped_events']} events were dropped")
    for row in report["memory_map"]:
        used = (row["total_bytes"] or 0) - (row["free_bytes"] or 0)
        if used and row["tracked_bytes"] > used:
            wrong.append(f"device {row['device']}: {size(row['tracked_bytes'])} tracked, the driver has {size(used)} in use")
times = [[line["step_seconds"] for line in lines(suffix) if "step_seconds" in line] for suffix in (".untraced.out", ".out")]
if all(times):
    said.append(f"a step {times[0][0] * 1e6:.1f} µs, traced {times[1][0] * 1e6:.1f} µs")
print(f"{'FAILED' if wrong else 'ok    '} {name:28} {'; '.join(wrong + said)}")
sys.exit(bool(wrong))
