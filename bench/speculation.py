"""What speculative generation (docs/speculation.md) is worth: seconds to the first verified answer and to the
best one, with and without `--speculate`, at equal samples.

    python3 bench/speculation.py OUT [--device cuda] [--samples 4] [--count 30] [--tasks FOLDER] [--model DIR]

Each task is searched by `nereid optimize --proposers model --whole-only --every-sample` in both ways, one
after the other, the order changing from task to task; all samples of both are judged. With --budget 40s the
search is the usual one instead, subgraphs included, which ends with the first verified result or at the
budget, and a third way is one sample: shares of verified tasks are what counts then. OUT gets runs.jsonl, a
line a run, and summary.json; runs that OUT has already are not made again.

Ratios are geometric means over tasks that both ways verify, with a 95 % interval by bootstrap over tasks;
above 1 speculation is sooner. "model" and "judge" are mean shares of a search in which an answer was written
and judged. Tasks are drawn from FOLDER (tests/tasks) by --seed. NEREID (the command; ./nereid) may be several
words.
"""

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEREID = os.environ.get("NEREID", str(ROOT / "nereid")).split()
WAYS = {"one": [], "usual": [], "speculate": ["--speculate"]}


def search(args, task, way, scratch):
    """The JSON of one search, or nothing where it failed."""
    words = [*NEREID, "optimize", str(task), "-o", str(scratch / "out.py"), "--json", "--no-store"]
    words += ["--keep-slower", "--proposers", "model", "--device", args.device, "--policy", "strict"]
    words += ["--samples", str(1 if way == "one" else args.samples), *WAYS[way]]
    if args.model:
        words += ["--model", args.model]
    if args.budget:
        words += ["--budget", args.budget, "--target-speedup", "0.000001"]
    else:
        words += ["--budget", "300s", "--whole-only", "--every-sample", "--repairs", "0"]
    done = subprocess.run(words, capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{task.name}, {way}: exit code {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)
        return None
    if "verdict" not in found:
        print(f"{task.name}, {way}: {found}", file=sys.stderr)
        return None
    times = found.get("times")  # of what was tried; nothing where nothing was
    best = times["candidate_ms"] if times else found.get("modelled_ms")
    return {
        "task": task.stem,
        "way": way,
        "verified": found["verdict"] == "Verified",
        "first_seconds": found["first_seconds"],
        "best_seconds": found["best_seconds"],
        "seconds": found["seconds"],
        "best_ms": best,
        "tokens": found["cost"]["completion_tokens"],
        "answers": sum(span["what"] == "written" for span in found["timeline"]["spans"]),
        **{name: found["timeline"][name] for name in ("writing", "judging", "both")},
    }


def geometric_mean(ratios, seed=1, draws=2000):
    """With its 95 % interval."""
    logs = [math.log(ratio) for ratio in ratios]
    if not logs:
        return None
    rng = random.Random(seed)
    means = sorted(sum(rng.choices(logs, k=len(logs))) / len(logs) for _ in range(draws))
    low, high = means[int(0.025 * draws)], means[int(0.975 * draws)]
    return {name: math.exp(x) for name, x in (("mean", sum(logs) / len(logs)), ("low", low), ("high", high))}


def summary(args, runs):
    by_task = {}
    for run in runs:
        by_task.setdefault(run["task"], {})[run["way"]] = run
    ways = sorted({run["way"] for run in runs}, key=list(WAYS).index)
    complete = [task for task in by_task.values() if len(task) == len(ways)]
    result = {"device": args.device, "samples": args.samples, "budget": args.budget, "tasks": len(complete)}
    for way in ways:
        own = [task[way] for task in complete]
        mean = lambda name, own=own: sum(run[name] for run in own) / len(own) if own else None  # noqa: E731
        result[way] = {"verified": sum(run["verified"] for run in own)}
        result[way] |= {
            name: mean(name) for name in ("seconds", "tokens", "answers", "writing", "judging", "both")
        }
    both = [task for task in complete if task["usual"]["verified"] and task["speculate"]["verified"]]
    result["both_verified"] = len(both)
    for name in ("first_seconds", "best_seconds", "best_ms"):
        result[f"{name}_ratio"] = geometric_mean(
            [task["usual"][name] / task["speculate"][name] for task in both if task["speculate"][name]]
        )
    result["seconds_ratio"] = geometric_mean(
        [task["usual"]["seconds"] / task["speculate"]["seconds"] for task in complete]
    )
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--tasks", type=pathlib.Path, default=ROOT / "tests/tasks")
    parser.add_argument("--model")
    parser.add_argument("--budget")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tasks = sorted(path for path in args.tasks.glob("*.py") if "class Model" in path.read_text())
    tasks = random.Random(args.seed).sample(tasks, min(args.count, len(tasks)))
    ways = list(WAYS) if args.budget else ["usual", "speculate"]
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "runs.jsonl"
    runs = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(run["task"], run["way"]) for run in runs}
    with tempfile.TemporaryDirectory() as scratch:
        for number, task in enumerate(tasks):
            for way in ways[number % len(ways) :] + ways[: number % len(ways)]:
                if (task.stem, way) in known:
                    continue
                run = search(args, task, way, pathlib.Path(scratch))
                if run is None:
                    continue
                runs.append(run)
                with open(file, "a") as lines:
                    lines.write(json.dumps(run) + "\n")
                print(f"{number + 1}/{len(tasks)} {task.stem} {way}: {run['first_seconds']}", file=sys.stderr)
    result = summary(args, runs)
    (args.out / "summary.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
