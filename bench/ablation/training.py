"""What the runs themselves said: a table of their last steps, and curves."""

import json
import math

from files import TRAINED, lines_of, seconds_of
from curves import svg

LAST = 0.1  # of a run's steps: the end of a curve
PLOTS = {
    "reward": "reward",
    "verdict/Verified": "share of answers that are Verified",
    "verdict/Disallowed": "share of answers that a rule refuses",
    "speedup": "geometric mean of the Verified's speed over eager",
    "entropy": "entropy, nats a token",
    "kl": "KL to the policy that wrote, nats a token",
}
POINTS = 120  # of a curve


def runs_of(folder, arm):
    found = {
        unit.seed: lines_of(folder / unit.name / "run" / "metrics.jsonl")
        for unit in arm.units
        if unit.program != "none"
    }
    return {seed: steps for seed, steps in found.items() if steps}


def last_of(steps):
    return steps[-max(1, math.ceil(LAST * len(steps))) :]


def value_of(step, figure):
    """A share that a step does not name is 0 there."""
    return step.get(figure, 0 if "/" in figure and "reward" in step else None)


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def end_of(runs, figure):
    """The mean of the last steps of all seeds. None where no step has it."""
    return mean([value_of(step, figure) for steps in runs.values() for step in last_of(steps)])


def first_of(runs, figure):
    return mean([value_of(steps[0], figure) for steps in runs.values()])


def rules_of(runs):
    """[(rule, share)] at the end, the most frequent first."""
    names = {
        figure for steps in runs.values() for step in steps for figure in step if figure.startswith("rule/")
    }
    return sorted(
        ((name.removeprefix("rule/"), end_of(runs, name)) for name in names),
        key=lambda pair: (-pair[1], pair[0]),
    )


def paid_of(runs, end=True):
    """The share of answers that were rewarded though only a rule refuses them, as all rewards are 0 or 1 but
    for this."""
    reward, verified = (
        (end_of if end else first_of)(runs, "reward"),
        (end_of if end else first_of)(runs, "verdict/Verified"),
    )
    return None if None in (reward, verified) else max(reward - verified, 0.0)


def shares_of(runs):
    """What share of the tasks each class had at the end, in percent."""
    names = sorted(
        {
            figure
            for steps in runs.values()
            for step in steps
            for figure in step
            if figure.startswith("share/")
        }
    )
    return " / ".join(f"{100 * end_of(runs, name):.0f}" for name in names) or "-"


def plain(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def training(folder, table, rows):
    learnt, tuned = [], []
    for arm in table.arms:
        runs = runs_of(folder, arm)
        if not runs:
            continue
        done = [
            json.loads((folder / unit.name / TRAINED).read_text())
            for unit in arm.units
            if (folder / unit.name / TRAINED).exists()
        ]
        used = [
            f"{sum(d[key] for d in done) / len(done):.0f}" if done else "-"
            for key in ("steps", "seconds", "rollouts")
        ]
        seeds = f"{len(done)} of {len(arm.units)}"
        if arm.units[0].program == "sft":
            tuned.append(
                [
                    arm.name,
                    seeds,
                    *used[:2],
                    plain(end_of(runs, "loss"), "{:.4f}"),
                    plain(mean([heldout(steps) for steps in runs.values()]), "{:.4f}"),
                ]
            )
            continue
        often = ", ".join(f"{rule} {100 * share:.1f} %" for rule, share in rules_of(runs)[:3] if share > 0)
        learnt.append(
            [
                arm.name,
                seeds,
                *used,
                f"{plain(first_of(runs, 'reward'))} to {plain(end_of(runs, 'reward'))}",
                f"{plain(first_of(runs, 'verdict/Verified'))} to {plain(end_of(runs, 'verdict/Verified'))}",
                plain(paid_of(runs)),
                often or "none",
                f"{plain(first_of(runs, 'entropy'), '{:.4f}')} to {plain(end_of(runs, 'entropy'), '{:.4f}')}",
                plain(mean([step.get("kl") for steps in runs.values() for step in steps]), "{:.2g}"),
                plain(end_of(runs, "length"), "{:.0f}"),
                shares_of(runs),
            ]
        )
    lines = []
    if learnt:
        lines += [
            f"Reinforcement learning: from the first step to the mean of the last {LAST:.0%}, of all seeds.",
            "",
            *rows(
                [
                    "arm",
                    "seeds done",
                    "steps",
                    "seconds",
                    "rollouts",
                    "reward",
                    "Verified",
                    "rewarded and refused",
                    "rules broken most",
                    "entropy",
                    "KL, mean",
                    "tokens",
                    "levels, %",
                ],
                learnt,
            ),
        ]
    if tuned:
        lines += [
            "Fine-tuning. Losses are of other texts with plans than without: they cannot be compared.",
            "",
            *rows(["arm", "seeds done", "steps", "seconds", "loss", "held-out loss, last"], tuned),
        ]
    return lines or ["Nothing is trained yet.", ""]


def heldout(steps):
    return next(
        (step["held_out_loss"] for step in reversed(steps) if step.get("held_out_loss") is not None), None
    )


def curve(runs, figure):
    """(seconds, mean, lowest, highest) over seeds, of steps that all seeds have, averaged over pieces of a
    curve."""
    length = min(len(steps) for steps in runs.values())
    piece = max(1, math.ceil(length / POINTS))
    ends = [[sum(map(seconds_of, steps[: i + 1])) for i in range(length)] for steps in runs.values()]
    line = []
    for begin in range(0, length, piece):
        end = min(begin + piece, length)
        means = [
            value
            for value in (
                mean([value_of(step, figure) for step in steps[begin:end]]) for steps in runs.values()
            )
            if value is not None
        ]
        if means:
            line.append((mean([seconds[end - 1] for seconds in ends]), mean(means), min(means), max(means)))
    return line


def plots(folder, table, out):
    lines = []
    for figure, says in PLOTS.items():
        drawn = [
            (arm.name, curve(runs, figure))
            for arm in table.arms
            if (runs := runs_of(folder, arm))
            and any(figure in step for steps in runs.values() for step in steps)
        ]
        drawn = [(name, line) for name, line in drawn if line]
        if drawn:
            name = figure.replace("/", "_").lower() + ".svg"
            (out / name).write_text(svg(says, "seconds of steps", says, drawn))
            lines += [f"![{says}]({name})", ""]
    return lines
