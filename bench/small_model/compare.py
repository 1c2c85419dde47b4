"""Compares a model's greedy answers with those of the model before it, at equal correctness or not: what
training changed.

    python3 bench/small_model/compare.py BEFORE AFTER [AFTER...] [--json]

Of several AFTERs the fastest answer to each task that is Verified counts: what choosing among them has to
give at most. One program has one speed, and so has the compiler's first choice: the mean over all results
given, since the fastest of several clocks is faster by chance (how far clocks of one program are apart is
printed last). All are results.jsonl, or its folder, that evaluate.py or `nereid eval` left of the same tasks.
By number of operators (`level`) and size, with 95 % intervals by bootstrap over tasks, the same tasks for
both:
* Verified before and after, the difference in points, how many tasks were lost and how many won;
* both Verified: how much faster the answers after are, where both are right. It does not count what was lost:
  a model that answers only the one task that became faster is fastest here;
* all tasks: the same with the speed of eager PyTorch, 1, where an answer is not Verified, for then PyTorch
  runs instead. Tasks whose right answer has no time are not in it;
* faster than the compiler's first choice: of all tasks with one that was timed, before and after. What is not
  Verified is not faster.
Speeds are over eager PyTorch, each timed against its reference in its own run. A task where either answer's
verdict is an Error is in none of this; their number is printed.
"""

import argparse
import itertools
import json
import math
import pathlib
import random
import sys

DRAWS, SHARE = 4000, 0.95


def read(path):
    """{task: {"level", "large", "verdict", "program", "speed", "compiler"}}: logarithms over eager, None
    where nothing was timed."""
    path = path / "results.jsonl" if path.is_dir() else path
    if not path.exists():
        sys.exit(f"{path}: expected what evaluate.py or `nereid eval` left")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    if not any("sample" in row for row in rows):  # nereid eval's: the last of a task counts
        return {
            row["id"]: {
                "level": level_of(row["id"]),
                "large": False,
                "verdict": row["verdict"],
                "program": None,
                "speed": (
                    math.log(row["speedup"]) if row["verdict"] == "Verified" and row.get("speedup") else None
                ),
                "compiler": None,
            }
            for row in rows
            if "id" in row
        }
    speed = lambda row: (
        math.log(row["reference_ms"] / row["ms"]) if row["verdict"] == "Verified" and row.get("ms") else None
    )
    compiler = {row["task"]: speed(row) for row in rows if row["sample"] == "compiler"}
    return {
        row["task"]: {
            "level": row["level"],
            "large": "_large" in row["task"],
            "verdict": row["verdict"],
            "program": row.get("program"),
            "speed": speed(row),
            "compiler": compiler.get(row["task"]),
        }
        for row in rows
        if row["sample"] == "greedy"
    }


def mean(values):
    known = [x for x in values if x is not None]
    return sum(known) / len(known) if known else None


def clocked_alike(several):
    """The same results, a program's speed and the compiler's being the means over all of them."""
    found = [{} for _ in several]
    for name in {name: None for of in several for name in of}:
        own = [of.get(name) for of in several]
        there = list(
            {id(one): one for one in own if one is not None}.values()
        )  # what is given twice has one clock
        compiler = mean(one["compiler"] for one in there)
        for of, one in zip(found, own):
            if one is not None:
                same = [
                    other
                    for other in there
                    if other is one or (one["program"] is not None and other["program"] == one["program"])
                ]
                of[name] = {
                    **one,
                    "compiler": compiler,
                    "speed": None if one["speed"] is None else mean(other["speed"] for other in same),
                }
    return found


def clocks_apart(several):
    """{"answers", "compiler"}: of all pairs of clocks of one program how many there are, and how far they are
    apart in the median and in one of ten, as a share of the time."""
    answers, compiler = [], []
    for one, other in itertools.combinations({id(of): of for of in several}.values(), 2):
        for a, b in ((one[name], other[name]) for name in one if name in other):
            if (
                a["program"] is not None
                and a["program"] == b["program"]
                and None not in (a["speed"], b["speed"])
            ):
                answers.append(abs(a["speed"] - b["speed"]))
            if None not in (a["compiler"], b["compiler"]):
                compiler.append(abs(a["compiler"] - b["compiler"]))
    at = lambda values, share: math.expm1(sorted(values)[int(share * len(values))]) if values else None
    return {
        name: {"pairs": len(of), "median": at(of, 0.5), "one_of_ten": at(of, 0.9)}
        for name, of in (("answers", answers), ("compiler", compiler))
    }


def fastest(several):
    """Of each task that all have the right answer that is fastest, or the first."""
    return {
        name: max(
            (of[name] for of in several), key=lambda one: -math.inf if one["speed"] is None else one["speed"]
        )
        for name in several[0]
        if all(name in of for of in several)
    }


def level_of(name):
    head = name.split("_")[0]
    return head[1:] if head[:1] == "L" and head[1:].isdigit() else "-"


def interval(values, scale, seed=1):
    """[mean, low, high] of a list of numbers; None of none."""
    if not values:
        return None
    draw, count = random.Random(seed), len(values)
    means = sorted(sum(draw.choices(values, k=count)) / count for _ in range(DRAWS))
    tail = (1 - SHARE) / 2
    return [
        scale(x) for x in (sum(values) / count, means[int(tail * DRAWS)], means[int((1 - tail) * DRAWS) - 1])
    ]


def compared(pairs):
    """Of [(before, after)] of the same tasks."""
    asked = [(b, a) for b, a in pairs if "Error" not in (b["verdict"], a["verdict"])]
    right = [[one["verdict"] == "Verified" for one in pair] for pair in asked]
    found = {
        "tasks": len(asked),
        "errors": len(pairs) - len(asked),
        "verified": [sum(of) for of in zip(*right)] or [0, 0],
        "verified_points": interval([100 * (a - b) for b, a in right], float),
        "lost": sum(b and not a for b, a in right),
        "won": sum(a and not b for b, a in right),
    }
    both = [a["speed"] - b["speed"] for b, a in asked if None not in (b["speed"], a["speed"])]
    worth = [[0.0 if one["verdict"] != "Verified" else one["speed"] for one in pair] for pair in asked]
    every = [a - b for b, a in worth if None not in (b, a)]
    timed = any(one["speed"] is not None for pair in asked for one in pair)
    found |= {
        "both": len(both),
        "both_verified": interval(both, math.exp),
        "all": len(every) if timed else 0,
        "all_wrong_as_eager": interval(every, math.exp) if timed else None,
    }
    faster = [
        [one["speed"] is not None and one["speed"] > one["compiler"] for one in pair]
        for pair in asked
        if None not in (pair[0]["compiler"], pair[1]["compiler"])
    ]
    found |= {
        "compared_with_compiler": len(faster),
        "faster_than_compiler": [sum(of) / len(faster) for of in zip(*faster)] if faster else None,
        "faster_points": interval([100 * (a - b) for b, a in faster], float),
    }
    return found


def summary_line(name, f):
    times = lambda i: f"{i[0]:.3f} [{i[1]:.3f}, {i[2]:.3f}]"
    points = lambda i: f"{i[0]:+.1f} points [{i[1]:+.1f}, {i[2]:+.1f}]"
    text = f"{name}, {f['tasks']} tasks" + (f" ({f['errors']} more have an Error)" if f["errors"] else "")
    if f["tasks"] == 0:
        return text
    text += (
        f": Verified {f['verified'][0] / f['tasks']:.1%} -> {f['verified'][1] / f['tasks']:.1%},"
        f" {points(f['verified_points'])}, {f['lost']} lost, {f['won']} won"
    )
    if f["both_verified"]:
        text += f"; times as fast: where both are Verified {times(f['both_verified'])} ({f['both']})"
    if f["all_wrong_as_eager"]:
        text += f", all, eager's where not Verified {times(f['all_wrong_as_eager'])} ({f['all']})"
    if f["faster_than_compiler"]:
        text += (
            f"; faster than the compiler's first choice {f['faster_than_compiler'][0]:.1%} ->"
            f" {f['faster_than_compiler'][1]:.1%} of {f['compared_with_compiler']},"
            f" {points(f['faster_points'])}"
        )
    return text


def compare(before, *after):
    """{name: figures} by number of operators and size, of the tasks that all have."""
    before, *after = clocked_alike([before, *after])
    after = fastest(after)
    names = [name for name in before if name in after]
    figures = {}
    levels = list(dict.fromkeys(before[name]["level"] for name in names))
    sizes = [("", [name for name in names if not before[name]["large"]])]
    if len(sizes[0][1]) < len(names):
        sizes += [("large, ", [name for name in names if before[name]["large"]]), ("both sizes, ", names)]
    for size, some in sizes:
        for level in [*levels, "all"] if len(levels) > 1 else ["all"]:
            pairs = [(before[name], after[name]) for name in some if level in (before[name]["level"], "all")]
            figures[size + ("operators=" * level.isdigit() + level)] = compared(pairs)
    return figures


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path, nargs="+")
    parser.add_argument("--json", action="store_true", help="the figures as one object")
    options = parser.parse_args()
    results = {path: read(path) for path in (options.before, *options.after)}
    several = [results[path] for path in (options.before, *options.after)]
    figures = compare(*several)
    if not figures["all"]["tasks"] and not figures["all"]["errors"]:
        sys.exit(f"{options.before} and {options.after[0]}: expected the same tasks, got none that both have")
    apart = clocks_apart(several)
    if options.json:
        print(json.dumps({**figures, "clocks_apart": apart}, indent=1))
    else:
        print("\n".join(summary_line(*one) for one in figures.items()))
        for name, of in apart.items():
            if of["pairs"]:
                print(
                    f"clocks of one program, {name}: {of['pairs']} pairs, {of['median']:.1%} apart in the"
                    f" median, {of['one_of_ten']:.1%} in one of ten"
                )
    everywhere = set.intersection(*map(set, several))
    for path, one in results.items():
        if one.keys() - everywhere:
            print(
                f"{len(one.keys() - everywhere)} tasks of {path} are not in all, and left out",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
