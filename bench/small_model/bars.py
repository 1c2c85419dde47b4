"""The share of tasks that a model's search verifies, by kind, against its bars; for bench/remote/bars.

    python3 bench/small_model/bars.py split WORK [--packages 100] [--parts 2]
    python3 bench/small_model/bars.py report WORK EVAL...

split writes the tasks of WORK (1.jsonl, 2.jsonl and 5.jsonl of `nereid synth`, folders harvested-*) to
WORK/part0, part1, ... in an order of chance. report reads results.jsonl of `nereid eval` on these parts: a
table of shares with 95 % intervals (Wilson's) and bars, then how many tasks were not judged.
"""

import argparse
import json
import pathlib
import random
import re

from evaluate import wilson

# Shares that issue 36 asks for, with 16 samples and search.
BARS = {
    "1 operator": 0.99,
    "2 operators": 0.99,
    "5 operators": 0.98,
    "packages": 0.9,
    "convolutions, pools, norms": 0.9,
}
LAYERS = re.compile(r"conv|pool|norm", re.I)


def tasks_of(work, packages):
    """{name of file: source}; the name begins with the kind."""
    found = {}
    for length in (1, 2, 5):
        for i, line in enumerate(open(work / f"{length}.jsonl")):
            found[f"L{length}_{i:04}"] = json.loads(line)["code"]
    for folder in sorted(work.glob("harvested-*")):
        paths = sorted(folder.glob("*.py"))
        for path in random.Random(1).sample(paths, min(packages, len(paths))):
            found[f"P_{folder.name}_{path.stem}"] = path.read_text()
    return found


def split(args):
    found = list(tasks_of(args.work, args.packages).items())
    random.Random(2).shuffle(found)
    for number, (name, source) in enumerate(found):
        # `nereid eval` takes files by their names: the order of chance is in them.
        file = args.work / f"part{number % args.parts}" / f"T{number:04}_{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    print(json.dumps({"tasks": len(found), "parts": args.parts}))


def kinds_of(name, source):
    kind = name.split("_", 1)[1]
    if kind.startswith("L"):
        count = kind[1]
        found = ["1 operator" if count == "1" else f"{count} operators"]
    else:
        found = ["packages"]
    return found + (["convolutions, pools, norms"] if LAYERS.search(source) else [])


def report(args):
    verdicts = {}
    for folder in args.evals:
        for line in open(folder / "results.jsonl"):
            row = json.loads(line)
            if "verdict" in row:
                verdicts[row["id"]] = row["verdict"]
    right, judged, missing = {}, {}, 0
    for path in sorted(args.work.glob("part*/T*.py")):
        if path.stem not in verdicts:
            missing += 1
            continue
        for kind in kinds_of(path.stem, path.read_text()):
            judged[kind] = judged.get(kind, 0) + 1
            right[kind] = right.get(kind, 0) + (verdicts[path.stem] == "Verified")
    print("| tasks | verified | share [95 %] | bar |\n|---|---|---|---|")
    for kind, bar in BARS.items():
        if kind in judged:
            low, high = wilson(right[kind], judged[kind])
            share = right[kind] / judged[kind]
            print(f"| {kind} | {right[kind]} of {judged[kind]} | {share:.1%} [{low:.1%}, {high:.1%}] | "
                  f"{bar:.0%}, {'reached' if share >= bar else 'missed'} |")  # fmt: skip
    print(f"\n{missing} tasks were not judged in time.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("split")
    one.add_argument("work", type=pathlib.Path)
    one.add_argument("--packages", type=int, default=100)
    one.add_argument("--parts", type=int, default=1)
    one.set_defaults(run=split)
    other = commands.add_parser("report")
    other.add_argument("work", type=pathlib.Path)
    other.add_argument("evals", type=pathlib.Path, nargs="+")
    other.set_defaults(run=report)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
