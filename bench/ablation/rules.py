"""What an arm does that is not kept from cheating: which rules it would have broken, whether the whole
verdict sees it, and what to look at."""

import collections
import math

from files import lines_of
from measures import log_speed
from training import end_of, paid_of, rules_of, runs_of

SHOWN = 5  # examples and fastest answers


def percent(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def answers_of(folder, arm):
    """Rows of all seeds' first evaluations by evaluate.py, with the seed."""
    for unit in arm.units:
        for evaluation in unit.evaluations[:1]:
            for row in lines_of(folder / unit.name / f"eval-{evaluation.name}" / "results.jsonl"):
                if row["sample"] != "compiler" and row["verdict"] != "Error":
                    yield unit.seed, row


def evaluation_row(name, kind, rows):
    refused = [row for row in rows if row["verdict"] == "Disallowed"]
    rules = collections.Counter(row["rule"] for row in refused)
    works = sum(row.get("verdict_without_rules") == "Verified" for row in refused)
    return [
        name,
        kind,
        str(len(rows)),
        str(len(refused)),
        str(works),
        ", ".join(f"{rule} {count}" for rule, count in rules.most_common()) or "none",
    ]


def evaluated_table(folder, arms, table_rows):
    body = []
    for arm in arms:
        rows = [row for _, row in answers_of(folder, arm)]
        for kind in ("greedy", "drawn"):
            some = [row for row in rows if row["sample"].startswith(kind)]
            if some:
                body.append(evaluation_row(arm.name, kind, some))
    header = ["arm", "answers", "in all", "refused by a rule", "of these right but for the rule", "by which"]
    return (
        [
            "Answers to held-out tasks, judged by the whole verdict, whatever the training paid for:",
            "",
            *table_rows(header, body),
        ]
        if body
        else []
    )


def trained_table(folder, arms, table_rows):
    body = []
    for arm in arms:
        runs = runs_of(folder, arm)
        if runs:
            often = ", ".join(f"{rule} {100 * share:.1f} %" for rule, share in rules_of(runs) if share > 0)
            body.append(
                [
                    arm.name,
                    percent(paid_of(runs, end=False)),
                    percent(paid_of(runs)),
                    percent(end_of(runs, "verdict/Disallowed")),
                    often or "none",
                ]
            )
    header = [
        "arm",
        "rewarded and refused, first step",
        "at the end",
        "refused by a rule at the end",
        "by which",
    ]
    return ["Answers in training:", "", *table_rows(header, body)] if body else []


def in_words(folder, arm):
    runs, rows = runs_of(folder, arm), [row for _, row in answers_of(folder, arm)]
    said = []
    if runs:
        paid = paid_of(runs)
        begun = paid_of(runs, end=False)
        said.append(
            f"In training `{arm.name}` was paid for {percent(paid)} of its answers at the end"
            f" ({percent(begun)} in the first step) though a rule refuses them"
            if paid
            else (
                f"In training `{arm.name}` was paid for nothing at the end that a rule refuses"
                f" ({percent(begun)} in the first step)"
            )
        )
    refused = [row for row in rows if row["verdict"] == "Disallowed"]
    if refused:
        works = sum(row.get("verdict_without_rules") == "Verified" for row in refused)
        rules = [rule for rule, _ in collections.Counter(row["rule"] for row in refused).most_common(3)]
        said.append(
            f"our verdict refuses {len(refused)} of its {len(rows)} answers to held-out tasks, {works} of"
            f" which are right but for the rule; broken most: {', '.join(rules)}"
        )
    elif rows:
        said.append(f"of its {len(rows)} answers to held-out tasks no rule refuses one")
    if not said:
        return []
    return ["; ".join(said) + ".", ""]


def examples(folder, arm):
    """What was rewarded and refused, one of each rule and reason."""
    found = {}
    for unit in arm.units:
        for rollout in lines_of(folder / unit.name / "run" / "some_rollouts.jsonl"):
            if rollout["verdict"] == "Disallowed" and rollout["reward"] > 0:
                found.setdefault(rollout["rule"], (unit.name, rollout))
    lines = [
        f"* {rule}: {rollout['reason']} ({name}, step {rollout['step']}, prompt {rollout['prompt']}, sample"
        f" {rollout['sample']})"
        for rule, (name, rollout) in sorted(found.items())[:SHOWN]
    ]
    return ["Of what was rewarded and refused:", "", *lines, ""] if lines else []


def fastest(folder, table, arm, table_rows):
    compiler = {}
    for other in table.arms:
        if other.units[0].evaluations and not other.units[0].evaluations[0].model:
            for row in lines_of(
                folder / other.units[0].name / f"eval-{other.units[0].evaluations[0].name}" / "results.jsonl"
            ):
                compiler[row["task"]] = log_speed(row)
    found = [
        (log_speed(row) - compiler[row["task"]], seed, row)
        for seed, row in answers_of(folder, arm)
        if row["sample"] == "greedy" and log_speed(row) is not None and compiler.get(row["task"]) is not None
    ]
    found.sort(key=lambda entry: (-entry[0], entry[1], entry[2]["task"]))
    body = [
        [
            f"{arm.name}/seed-{seed}",
            row["task"],
            f"{row['ms']:.4f}",
            f"{row['reference_ms']:.4f}",
            f"{math.exp(over):.2f}",
        ]
        for over, seed, row in found[:SHOWN]
    ]
    return (
        [
            (
                "A way of cheating that no rule knows would stand among the Verified. Its fastest ones with"
                " the compiler's, to be read (`answers.jsonl` of the unit's evaluation):"
            ),
            "",
            *table_rows(["unit", "task", "ms", "eager, ms", "times the compiler's speed"], body),
        ]
        if body
        else []
    )


def without_rules(folder, table, arm, names, table_rows):
    arms = [other for other in table.arms if other.name in names]
    return [
        *in_words(folder, arm),
        *evaluated_table(folder, arms, table_rows),
        *trained_table(folder, arms, table_rows),
        *examples(folder, arm),
        *fastest(folder, table, arm, table_rows),
    ]
