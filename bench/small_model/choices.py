"""What rollouts say about speed: whether a clock can be learnt from, and what each reward makes of fused
answers.

    python3 bench/small_model/choices.py FOLDER [--first STEP] [--before STEP]
    python3 bench/small_model/choices.py FOLDER --cuts 10      blocks and warps instead: pairs of right
                                                               answers to a task that differ in one kernel's
                                                               cut alone, of cuts that meet ten times

FOLDER is a run of `nereid train rl` (rollouts*.jsonl or .jsonl.gz), or what evaluate.py left with --samples.
Answers to a task are a group. By number of operators (or class) and size, and of all: how many are fused, how
often each kind is Verified, how much faster fused ones are where a group has both; how far right answers are
apart (5 %: what the same program timed twice may be, 1.4 to 2.6 % each), how much faster the fastest is than
the mean; and the push towards fused answers, simply or not, sum of A (fused - share of fused), under several
rewards, as a mean over groups in units of its standard error: what is below 2 either way is chance. "price"
is hrd's incorrect_penalty and best's plan_incorrect_penalty of docs/rl.md: log speed minus the right ones'
mean, and so much less where wrong. "best" is the objective of that name. Above the price at which the push is
nothing the model learns to write one by one.
"""

import argparse
import collections
import gzip
import itertools
import json
import math
import pathlib
import re
import statistics
import typing

REWARDS = {
    "right or wrong": lambda right, log: [float(r) for r in right],
    "speed, at most 2": lambda right, log: [r * min(math.exp(x), 2) for r, x in zip(right, log)],
    "speed, at most 10": lambda right, log: [r * min(math.exp(x), 10) for r, x in zip(right, log)],
    "price 1": lambda right, log: log_speed(right, log, 1),
    "price 0.5": lambda right, log: log_speed(right, log, 0.5),
    "price 0.25": lambda right, log: log_speed(right, log, 0.25),
    "price 0": lambda right, log: log_speed(right, log, 0),
    "best": lambda right, log: best(right, log, 0),
    "best at a price of 0.1": lambda right, log: best(right, log, 0.1),
    "best at a price of 1": lambda right, log: best(right, log, 1),
}
KINDS = ("Fused", "Simply fused", "One by one")
CUT = re.compile(r"BLOCK\w*=\d+(?:, BLOCK\w*=\d+)*, num_warps=\d+")
GRID = re.compile(r"(cdiv\([^,]*), \d+")  # what follows from a cut


class Answer(typing.NamedTuple):
    kind: str
    right: bool
    log: float  # of its speed
    code: str


def answer_of(text, right, log):
    return Answer(kind_of(text), right, log, "".join(text.split("```")[1:2]))


def log_speed(right, log, price):
    fine = [x for r, x in zip(right, log) if r]
    mean = statistics.fmean(fine) if fine else 0
    return [0.0] * len(log) if not fine else [x - mean if r else -price for r, x in zip(right, log)]


def best(right, log, price):
    return [max(x, 0) if r else x for r, x in zip(right, log_speed(right, log, price))]


def kind_of(answer):
    plan = answer.split("```", 1)[0]
    return next((kind.lower() for kind in KINDS if f"\n{kind}:" in plan), "other")


def read(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]  # the last may be half written


def of_run(files, first, before):
    """[(class, [Answer])]."""
    groups, texts = collections.defaultdict(list), {}
    for row in (row for file in files for row in read(file)):
        at = (row["step"], row["class"], row["task"], row["prompt"])
        answer = texts[(*at, row["sample"])] = (
            row["answer"] if "answer" in row else texts[(*at, row["same_as"])]
        )
        if first <= row["step"] < before:
            groups[at].append(
                answer_of(answer, row["verdict"] == "Verified", math.log(row.get("speedup") or 1))
            )
    return [(f"class {at[1]}", group) for at, group in groups.items()]


def of_evaluation(folder):
    results = collections.defaultdict(dict)
    for row in read(folder / "results.jsonl"):
        results[row["task"]][row["sample"]] = row
    names, groups = list(results), collections.defaultdict(list)
    for answer in read(folder / "drawn.jsonl"):
        row = results[names[answer["index"]]][f"drawn{answer['sample']}"]
        groups[row["task"]].append(
            answer_of(
                answer["text"],
                row["verdict"] == "Verified",
                math.log(row["reference_ms"] / row["ms"]) if "ms" in row else 0.0,
            )
        )
    return [
        (f"operators={results[name]['greedy']['level']}{', large' if '_large' in name else ''}", group)
        for name, group in groups.items()
    ]


def push(group, reward):
    right, log, fused = (
        [one.right for one in group],
        [one.log for one in group],
        ["fused" in one.kind for one in group],
    )
    worth, share = reward(right, log), sum(fused) / len(group)
    mean = statistics.fmean(worth)
    return sum((w - mean) * (f - share) for w, f in zip(worth, fused)) * len(group) / max(len(group) - 1, 1)


def over_its_error(values):
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0
    return statistics.fmean(values) / error if error else 0.0


def summary_line(groups):
    answers = [answer for group in groups for answer in group]
    lines = []
    for kind in map(str.lower, KINDS):
        of = [one.right for one in answers if one.kind == kind]
        if of:
            lines.append(
                f"{kind} {len(of) / len(answers):.0%} of answers, {sum(of) / len(of):.1%} of them Verified"
            )
    for kind in ("fused", "simply fused"):
        logs = [
            [[one.log for one in group if one.right and one.kind == which] for which in (kind, "one by one")]
            for group in groups
        ]
        differences = [statistics.fmean(a) - statistics.fmean(b) for a, b in logs if a and b]
        if differences:
            lines.append(
                f"{kind} over one by one {math.exp(statistics.fmean(differences)):.3f} ({len(differences)}"
                " groups with both)"
            )
    right = [[one.log for one in group if one.right] for group in groups]
    apart = [max(x) - min(x) for x in right if len(x) > 1]
    if apart:
        shares = (sum(x > math.log(1 + s) for x in apart) / len(groups) for s in (0.05, 0.1, 0.2))
        lines.append(
            "right ones apart by more than 5 / 10 / 20 % in"
            f" {' / '.join(f'{share:.0%}' for share in shares)} of groups"
        )
        lines.append(
            "the fastest over the mean"
            f" {math.exp(statistics.fmean(max(x) - statistics.fmean(x) for x in right if len(x) > 1)):.3f}"
        )
    lines.append(
        "push to fused: "
        + ", ".join(
            f"{name} {over_its_error([push(group, reward) for group in groups]):+.1f}"
            for name, reward in REWARDS.items()
        )
    )
    # The push is linear in the price.
    for of, names in (("", ("price 0", "price 1")), (" of best", ("best", "best at a price of 1"))):
        free, one = (statistics.fmean(push(group, REWARDS[name]) for group in groups) for name in names)
        if free > max(one, 0):
            lines.append(f"nothing at a price{of} of {free / (free - one):.2f}")
    return lines


def without_cuts(code):
    return CUT.sub("", GRID.sub(r"\1", code))


def cut_lines(groups, least):
    """Of each two cuts that at least so many pairs differ in: how much faster the first is, with its standard
    error."""
    differences = collections.defaultdict(list)
    for group in groups:
        alike = collections.defaultdict(
            lambda: collections.defaultdict(list)
        )  # by all but cuts, then by the code: its speeds
        for one in group:
            if one.right:
                alike[without_cuts(one.code)][one.code].append(one.log)
        for codes in alike.values():
            for (a, a_logs), (b, b_logs) in itertools.combinations(codes.items(), 2):
                differ = {
                    cuts for cuts in zip(enumerate(CUT.findall(a)), CUT.findall(b)) if cuts[0][1] != cuts[1]
                }
                if len(differ) == 1:
                    (((_, of_a), of_b),) = differ
                    over = statistics.fmean(a_logs) - statistics.fmean(b_logs)
                    differences[min((of_a, of_b), (of_b, of_a))].append(over if of_a < of_b else -over)
    lines = [f"{sum(map(len, differences.values()))} pairs"]
    for (a, b), logs in sorted(differences.items(), key=lambda item: -len(item[1])):
        if len(logs) >= max(least, 2):
            lines.append(
                f"    {a} over {b}: {math.exp(statistics.fmean(logs)):.3f} +-"
                f" {statistics.stdev(logs) / math.sqrt(len(logs)):.3f} ({len(logs)} pairs)"
            )
    return lines


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--before", type=int, default=1 << 60)
    parser.add_argument(
        "--cuts",
        type=int,
        metavar="PAIRS",
        help="what blocks and warps are worth, where at least so many pairs of answers say so",
    )
    options = parser.parse_args()
    files = sorted(options.folder.glob("rollouts*.jsonl*"))
    groups = of_run(files, options.first, options.before) if files else of_evaluation(options.folder)
    for name in [*sorted({name for name, _ in groups}), "all"]:
        own = [group for of, group in groups if name in (of, "all")]
        print(
            f"{name}, {len(own)} groups: "
            + (
                "; ".join(summary_line(own))
                if options.cuts is None
                else "\n".join(cut_lines(own, options.cuts))
            )
        )


if __name__ == "__main__":
    main()
