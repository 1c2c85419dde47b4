"""The families suite's table: a line a task, then a line a family.

    table.py TASKS RESULTS.jsonl      TASKS as tasks.py wrote it; RESULTS of `nereid eval`

Times are of CUDA graphs in milliseconds. roofline: the least time that the task can take over the
candidate's (docs/evaluation.md).
"""

import json
import math
import pathlib
import sys

tasks = pathlib.Path(sys.argv[1])
families = {row["task"]: row["family"] for row in map(json.loads, open(tasks / "index.jsonl"))}
names = [name for name in families if (tasks / f"{name}.py").exists()]
lines = pathlib.Path(sys.argv[2]).read_text().splitlines() if pathlib.Path(sys.argv[2]).exists() else []
# A task's line is written again when more is known.
results = {row["id"]: row for row in map(json.loads, filter(lambda line: line.startswith("{"), lines))
           if "id" in row}


def number(value, form="8.3f"):
    return f"{value:{form}}" if value else " " * (int(form.split(".")[0]) - 1) + "-"


def mean(values):
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def speedup(row):
    is_timed = row.get("reference_ms") and row.get("candidate_ms")
    return row["reference_ms"] / row["candidate_ms"] if is_timed else None


print(f"{'family':11} {'task':28} {'verdict':13} {'ms':>8} {'eager':>8} {'speedup':>7} {'roofline':>8} "
      f"{'compile':>8}")
for name in names:
    row = results.get(name, {})
    share = row.get("roofline")
    print(f"{families[name]:11} {name:28} {row.get('verdict', 'not judged'):13} "
          f"{number(row.get('candidate_ms'))} "
          f"{number(row.get('reference_ms'))} {number(speedup(row), '7.2f')} "
          f"{number(share and 100 * share, '7.0f')}% "
          f"{number(row.get('speedup_compile_called'), '8.2f')}")
print(f"\n{'family':11} {'tasks':>5} {'verified':>8} {'faster':>6} {'speedup':>7} {'roofline':>8} "
      f"{'compile':>8}")
for family in dict.fromkeys(families[name] for name in names):
    rows = [results.get(name, {}) for name in names if families[name] == family]
    verified = [row for row in rows if row.get("verdict") == "Verified"]
    ratios = [speedup(row) for row in verified]
    share = mean(row.get("roofline") for row in verified)
    print(f"{family:11} {len(rows):5} {len(verified):8} {sum((ratio or 0) > 1 for ratio in ratios):6} "
          f"{number(mean(ratios), '7.2f')} "
          f"{number(share and 100 * share, '7.0f')}% "
          f"{number(mean(row.get('speedup_compile_called') for row in verified), '8.2f')}")
print()
for name in names:
    row = results.get(name)
    if row is not None and row["verdict"] != "Verified":
        print(f"{name}: {row['verdict']}: {' '.join(row.get('reason', '').split())[:300]}")
