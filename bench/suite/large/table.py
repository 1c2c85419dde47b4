"""The large suite's table: verdicts and times by kind of task, the bars, then what is not Verified, by name.

table.py TASKS OUT SECONDS JOBS      TASKS as tasks.py wrote it; OUT as run fills it
"""

import json
import math
import pathlib
import statistics
import sys

tasks, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
seconds, jobs = float(sys.argv[3]), int(sys.argv[4])
sizes = {row["task"]: row for row in map(json.loads, open(tasks / "index.jsonl"))}


def lines(name):
    path = out / name
    return (
        [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
        if path.exists()
        else []
    )


results = {row["id"]: row for row in lines("results.jsonl") if "id" in row}


def kind_of(name):
    head = name.split("_")[0]
    return head if head[0] == "L" and head[1:].isdigit() else "real"


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


print(
    f"{'kind':6} {'tasks':>5} {'judged':>6} {'verified':>8} {'errors':>6} {'input GB':>14} {'s median':>8} "
    f"{'s p90':>6} {'s most':>6} {'speedup':>7}"
)
for kind in ("L1", "L2", "L5", "real"):
    names = [name for name in sizes if kind_of(name) == kind]
    if not names:
        continue
    judged = [results[name] for name in names if name in results]
    verified = [row for row in judged if row["verdict"] == "Verified"]
    took = [row["seconds"] for row in judged]
    ratios = [
        row["reference_ms"] / row["candidate_ms"]
        for row in verified
        if row.get("reference_ms") and row.get("candidate_ms")
    ]
    inputs = [sizes[name].get("inputs", 0) / 1e9 for name in names]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else 0
    print(
        f"{kind:6} {len(names):5} {len(judged):6} {len(verified):8} "
        f"{sum(row['verdict'] == 'Error' for row in judged):6} "
        f"{statistics.median(inputs):6.2f} to {max(inputs):4.1f} {quantile(took, 0.5):8.1f} "
        f"{quantile(took, 0.9):6.1f} {max(took, default=0):6.1f} {mean:7.2f}"
    )
if any(row.get("speedup_compile_called") for row in results.values()):
    columns = {
        "speedup": "graphs: faster than eager",
        "speedup_called": "called: than eager",
        "speedup_compile_called": "called: than torch.compile",
    }
    print()
    print("kind   " + "  ".join(f"{title:>26}" for title in columns.values()))
    for kind in ("L1", "L2", "L5", "real", "all"):
        judged = [row for name, row in results.items() if kind in ("all", kind_of(name))]
        found = [
            [row[key] for row in judged if row["verdict"] == "Verified" and row.get(key)] for key in columns
        ]
        cells = [
            f"{sum(r > 1 for r in ratios)} of {len(ratios)}, "
            f"{math.exp(statistics.fmean(map(math.log, ratios))):.2f}"
            for ratios in found
            if ratios
        ]
        print(f"{kind:6} " + "  ".join(f"{cell:>26}" for cell in cells))
memory = json.loads((out / "memory.json").read_text()) if (out / "memory.json").exists() else {}
singles = [row["seconds"] for row in lines("singles.jsonl") if "seconds" in row]
late = [
    name
    for name, row in results.items()
    if row["verdict"] in ("Error", "TimedOut", "CompileFailed")
    and any(word in row["reason"] for word in ("within", "deadline", " s;", "time"))
]
gib = 2**30
rows = [
    ("tasks judged", f"{len(results)} of {len(sizes)}", len(results) == len(sizes)),
    (
        f"seconds for all, {jobs} at a time",
        f"{seconds:.0f} (600 at most)",
        seconds <= 600 and len(results) == len(sizes),
    ),
    ("lost to a deadline", f"{len(late)} {' '.join(late)}", not late),
    (
        "median verdict alone, s",
        f"{statistics.median(singles):.2f} of {len(singles)} (4 at most)" if singles else "not measured",
        bool(singles) and statistics.median(singles) <= 4,
    ),
    (
        "largest host process, GiB",
        ", ".join(
            f"{name} {bytes / gib:.2f}" for name, bytes in sorted(memory.get("largest_process", {}).items())
        ),
        None,
    ),
    ("all host processes at once, GiB", f"{memory.get('all_at_once', 0) / gib:.2f}", None),
    ("processor seconds", f"{memory.get('processor_seconds', 0):.0f}", None),
]
print()
for what, figure, met in rows:
    print(f"{what:34} {figure}{'' if met is None else '   ok' if met else '   NOT MET'}")
print()
for name in sizes:
    row = results.get(name)
    if row is None or row["verdict"] != "Verified":
        why = "not judged" if row is None else f"{row['verdict']}: {' '.join(row['reason'].split())[:200]}"
        print(f"{name}: {why}")
