"""Tables and plots of what ablation.py left.

    report.py ARMS.toml FOLDER -o OUT     OUT/results.md and OUT/*.svg
"""
import argparse
import json
import math
import pathlib
import sys

from ablation import TRAINED, lines_of
from arms import Wrong, read_table
from curves import svg
from intervals import difference, interval

LAST = 0.1  # of a run's steps: what its end is told by
PLOTS = {"reward": "reward", "verdict/Verified": "share of answers that are Verified", "speedup": "geometric mean of the Verified's speed-up",
         "entropy": "entropy, nats a token"}
POINTS = 120  # of a curve


def speedup_of(result):
    """Over eager PyTorch: by a clock, else by the cost model."""
    measured = result.get("speedup")
    return measured if measured is not None else result.get("speedup_modelled")


def log_speedup(result):
    speedup = speedup_of(result) if result["verdict"] == "Verified" else None
    return math.log(speedup) if speedup else None


# A cell (value, weight) of one task's result.
MEASURES = {
    "verified": lambda r: (float(r["verdict"] == "Verified"), 1),
    "pass@1": lambda r: (r["verified"] / r["samples"] if r["samples"] else 0.0, 1 if r["samples"] else 0),
    "faster than eager": lambda r: (float((log_speedup(r) or 0) > 0), 1),
    "speed-up of the verified": lambda r: (log_speedup(r) or 0.0, 0 if log_speedup(r) is None else 1),
    "speed-up, 1 where not verified": lambda r: (log_speedup(r) or 0.0, 1),
}
SHARES = ("verified", "pass@1", "faster than eager")
COMPARED = ("verified", "pass@1", "speed-up, 1 where not verified")


def number(measure, value, signed=False):
    if measure in SHARES:
        return f"{100 * value:{'+' if signed else ''}.1f}"
    return f"{math.exp(value):.3f}"


def told(measure, found, signed=False):
    if found is None:
        return "-"
    text = f"{number(measure, found.mean, signed)} [{number(measure, found.low, signed)}, {number(measure, found.high, signed)}]"
    return f"**{text}**" if signed and (found.low > 0 or found.high < 0) else text


def heading(measure, compared=False):
    unit = "%" if measure in SHARES else "times"
    return f"{measure}, {'points' if compared and unit == '%' else unit}"


def rows(header, body):
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *("| " + " | ".join(row) + " |" for row in body), ""]


class Evaluated:
    """All finished evaluations of one name: results by arm, seed and task."""

    def __init__(self, folder, table):
        self.found, self.unfinished, self.machines, self.modelled = {}, [], set(), False
        for arm in table.arms:
            for unit in arm.units:
                for evaluation in unit.evaluations:
                    file = folder / unit.name / f"eval-{evaluation.name}" / "summary.json"
                    if not file.exists():
                        self.unfinished.append(f"{unit.name} ({evaluation.name})")
                        continue
                    summary = json.loads(file.read_text())
                    results = {r["id"]: r for r in summary["results"] if r["verdict"] != "Error"}
                    self.found.setdefault(f"{arm.name}/{evaluation.name}", {})[unit.seed] = results
                    self.machines.add(summary.get("hardware", "?"))
                    self.modelled |= any(r.get("speedup") is None and r.get("speedup_modelled") is not None for r in results.values())

    def tasks(self, *ways):
        """Those that every seed of all of these judged."""
        sets = [set(results) for way in ways for results in self.found[way].values()]
        return sorted(set.intersection(*sets)) if sets else []

    def matrix(self, way, tasks, measure):
        return [[MEASURES[measure](results[task]) for task in tasks] for _, results in sorted(self.found[way].items())]


def final_models(evaluated, table):
    says = {arm.name: arm.says for arm in table.arms}
    body = []
    for way, seeds in evaluated.found.items():
        tasks = evaluated.tasks(way)
        cells = [told(m, interval(evaluated.matrix(way, tasks, m))) if tasks else "-" for m in MEASURES]
        body.append([way, says[way.split("/")[0]], str(len(seeds)), str(len(tasks)), *cells])
    return rows(["arm/evaluation", "what it is", "seeds", "tasks", *map(heading, MEASURES)], body) if body else ["Nothing is evaluated yet.", ""]


def comparisons(evaluated, table):
    lines = []
    for question, pairs in table.comparisons:
        body = []
        for one, other in pairs:
            if one not in evaluated.found or other not in evaluated.found:
                continue
            tasks = evaluated.tasks(one, other)
            cells = [told(m, difference(evaluated.matrix(one, tasks, m), evaluated.matrix(other, tasks, m)), True) if tasks else "-" for m in COMPARED]
            body.append([f"{one} - {other}", str(len(tasks)), *cells])
        if body:
            lines += [f"**{question}**", "", *rows(["difference", "tasks of both", *(heading(m, True) for m in COMPARED)], body)]
    return lines


def runs_of(folder, arm):
    found = {unit.seed: lines_of(folder / unit.name / "run" / "metrics.jsonl") for unit in arm.units if unit.program != "none"}
    return {seed: steps for seed, steps in found.items() if steps}


def end_of(runs, figure):
    """The mean of the last steps of all seeds; a share that a step does not name is 0 there. None where no step has it."""
    values = []
    for steps in runs.values():
        last = steps[-max(1, math.ceil(LAST * len(steps))):]
        values += [step.get(figure) if "/" not in figure else step.get(figure, 0) for step in last]
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def first_of(runs, figure):
    values = [steps[0][figure] for steps in runs.values() if steps[0].get(figure) is not None]
    return sum(values) / len(values) if values else None


def plain(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def training(folder, table):
    body = []
    for arm in table.arms:
        runs = runs_of(folder, arm)
        if not runs:
            continue
        done = [json.loads((folder / unit.name / TRAINED).read_text()) for unit in arm.units if (folder / unit.name / TRAINED).exists()]
        rules = sorted({f for steps in runs.values() for step in steps for f in step if f.startswith("rule/")}, key=lambda f: (-end_of(runs, f), f))
        often = ", ".join(f"{rule.removeprefix('rule/')} {100 * end_of(runs, rule):.1f} %" for rule in rules[:3] if end_of(runs, rule) > 0)
        reward, verified = end_of(runs, "reward"), end_of(runs, "verdict/Verified")
        refused = None if reward is None else max(reward - verified, 0.0)
        used = [f"{sum(d[key] for d in done) / len(done):{form}}" if done else "-" for key, form in (("rollouts", ".0f"), ("seconds", ".0f"))]
        body.append([arm.name, f"{len(done)} of {len(arm.units)}", *used, plain(reward), plain(verified), plain(refused), often or "none",
                     f"{plain(first_of(runs, 'entropy'))} to {plain(end_of(runs, 'entropy'))}", plain(end_of(runs, "length"), "{:.0f}")])
    if not body:
        return ["Nothing is trained yet.", ""]
    return rows(["arm", "seeds done", "rollouts", "seconds", "reward", "Verified", "rewarded and refused", "rules broken most", "entropy", "tokens"], body)


def curve(runs, figure):
    """(step, mean, lowest, highest) over seeds, of steps that all seeds have, averaged over pieces of a curve."""
    length = min(len(steps) for steps in runs.values())
    piece = max(1, math.ceil(length / POINTS))
    line = []
    for begin in range(0, length, piece):
        means = []
        for steps in runs.values():
            values = [step.get(figure) if "/" not in figure else step.get(figure, 0) for step in steps[begin:begin + piece]]
            values = [value for value in values if value is not None]
            if values:
                means.append(sum(values) / len(values))
        if means:
            line.append((begin + (min(begin + piece, length) - begin - 1) / 2, sum(means) / len(means), min(means), max(means)))
    return line


def plots(folder, table, out):
    lines = []
    for figure, says in PLOTS.items():
        drawn = [(arm.name, curve(runs, figure)) for arm in table.arms if (runs := runs_of(folder, arm))
                 and any(figure in step for steps in runs.values() for step in steps)]
        drawn = [(name, line) for name, line in drawn if line]
        if drawn:
            name = figure.replace("/", "_").lower() + ".svg"
            (out / name).write_text(svg(says, "step", says, drawn))
            lines += [f"![{says}]({name})", ""]
    return lines


def report(folder, table, out):
    out.mkdir(parents=True, exist_ok=True)
    evaluated = Evaluated(folder, table)
    lines = ["# Ablation: results", "", "Written by `bench/ablation/report.py`; `docs/ablation.md` says what the arms are and how to read this.", "",
             f"On {', '.join(sorted(evaluated.machines)) or 'no machine yet'}. Means with 95 % bootstrap intervals over seeds and tasks.", ""]
    if len(evaluated.machines) > 1:
        lines += ["These are of several machines: times are not comparable.", ""]
    if evaluated.modelled:
        lines += ["Some speed-ups are the cost model's: nothing was timed there.", ""]
    if evaluated.unfinished:
        lines += [f"Not finished: {', '.join(evaluated.unfinished)}.", ""]
    lines += ["## What comes out", "", *final_models(evaluated, table)]
    compared = comparisons(evaluated, table)
    if compared:
        lines += ["## Differences", "", "Bold where the interval does not hold zero (or 1, of ratios).", "", *compared]
    lines += ["## How it was trained", "", f"The means of the last {LAST:.0%} of the steps of all seeds.", "", *training(folder, table), *plots(folder, table, out)]
    (out / "results.md").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms")
    parser.add_argument("folder")
    parser.add_argument("-o", "--output", required=True)
    asked = parser.parse_args()
    try:
        report(pathlib.Path(asked.folder), read_table(asked.arms), pathlib.Path(asked.output))
    except Wrong as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
