"""What came of each evaluation, task by task, and what is measured of it: cells (value, weight) for
intervals.py."""

import dataclasses
import json
import math

from files import MACHINE, lines_of
from intervals import difference, interval


@dataclasses.dataclass
class Outcome:
    """Of one task. `speed`: the logarithm of the answer's speed over eager PyTorch's, by a clock, where the
    answer is Verified."""

    level: str
    verdict: str
    speed: float | None
    drawn: int = 0  # samples
    drawn_right: int = 0
    answers: int = 0  # of all kinds
    refused: int = 0  # by a rule
    large: bool = False  # a task of evaluate.py's --large


def log_speed(row):
    return (
        math.log(row["reference_ms"] / row["ms"]) if row["verdict"] == "Verified" and row.get("ms") else None
    )


def from_answers(rows, evaluation):
    """Rows of evaluate.py. An Error is no verdict: such a sample does not count, and a task whose answer it
    is has no outcome."""
    by_task = {}
    for row in rows:
        if row["verdict"] != "Error":
            by_task.setdefault(row["task"], []).append(row)
    found = {}
    for task, rows in by_task.items():
        drawn = [row for row in rows if row["sample"].startswith("drawn")]
        if evaluation.answer == "best":  # by the clock, where there was one
            answers = sorted(drawn, key=lambda row: (row["verdict"] != "Verified", -(log_speed(row) or 0)))
        else:
            answers = [row for row in rows if row["sample"] == ("greedy" if evaluation.model else "compiler")]
        if answers:
            found[task] = Outcome(
                rows[0]["level"],
                answers[0]["verdict"],
                log_speed(answers[0]),
                len(drawn),
                sum(row["verdict"] == "Verified" for row in drawn),
                len(rows),
                sum(row["verdict"] == "Disallowed" for row in rows),
                "_large" in task,
            )
    return found


def from_search(results):
    return {
        r["id"]: Outcome(
            r["id"][1:].split("_")[0],
            r["verdict"],
            math.log(r["speedup"]) if r["verdict"] == "Verified" and r.get("speedup") else None,
            r["samples"],
            min(r["verified"], r["samples"]),
        )
        for r in results
        if r["verdict"] != "Error"
    }


def right(outcome):
    return outcome.verdict == "Verified"


MEASURES = {
    "Verified": lambda o, _: (float(right(o)), 1),
    "Verified as drawn": lambda o, _: (o.drawn_right / o.drawn if o.drawn else 0.0, 1 if o.drawn else 0),
    "refused by a rule": lambda o, _: (o.refused / o.answers if o.answers else 0.0, o.answers),
    "speed of the Verified": lambda o, _: (o.speed or 0.0, 0 if o.speed is None else 1),
    "speed, eager's where not Verified": lambda o, _: (
        o.speed or 0.0,
        0 if right(o) and o.speed is None else 1,
    ),
    "speed of large tasks, eager's where not Verified": lambda o, _: (
        o.speed or 0.0,
        0 if not o.large or right(o) and o.speed is None else 1,
    ),
    "speed relative to the compiler's": lambda o, compiler: (
        (o.speed - compiler, 1) if None not in (o.speed, compiler) else (0.0, 0)
    ),
}
RATIOS = (
    "speed of the Verified",
    "speed, eager's where not Verified",
    "speed of large tasks, eager's where not Verified",
    "speed relative to the compiler's",
)


def number(measure, value, signed=False):
    return f"{math.exp(value):.3f}" if measure in RATIOS else f"{100 * value:{'+' if signed else ''}.1f}"


def formatted(measure, found, signed=False):
    """The mean and its interval; a difference that is shown is bold."""
    if found is None:
        return "-"
    text = (
        f"{number(measure, found.mean, signed)} [{number(measure, found.low, signed)},"
        f" {number(measure, found.high, signed)}]"
    )
    return f"**{text}**" if signed and shown(found) else text


def shown(found):
    return found is not None and (found.low > 0 or found.high < 0)


class Evaluated:
    """All finished evaluations: outcomes by way ("arm/evaluation"), seed and task."""

    def __init__(self, folder, table):
        self.found, self.unfinished, self.machines, self.known = {}, [], set(), {}
        for arm in table.arms:
            for unit in arm.units:
                if (folder / unit.name / MACHINE).exists():
                    self.machines.add(json.loads((folder / unit.name / MACHINE).read_text())["device"])
                for evaluation in unit.evaluations:
                    self.read(folder, arm, unit, evaluation)
        ways = [
            f"{arm.name}/{evaluation.name}" for arm in table.arms for evaluation in arm.units[0].evaluations
        ]
        self.missing = [
            name
            for way in ways
            if way not in self.found
            for name in [
                (
                    way
                    if sum(other.startswith(way.split("/")[0] + "/") for other in ways) > 1
                    else way.split("/")[0]
                )
            ]
        ]
        self.timed = any(
            o.speed is not None
            for seeds in self.found.values()
            for outcomes in seeds.values()
            for o in outcomes.values()
        )
        speeds = [
            outcomes
            for way, seeds in self.found.items()
            if not evaluation_of(table, way).model
            for _, outcomes in sorted(seeds.items())
        ]
        self.compiler = {task: outcome.speed for outcomes in speeds[:1] for task, outcome in outcomes.items()}

    def read(self, folder, arm, unit, evaluation):
        out = folder / unit.name / f"eval-{evaluation.name}"
        if not (out / "summary.json").exists():
            self.unfinished.append(f"{unit.name} ({evaluation.name})")
            return
        if evaluation.program == "search":
            outcomes = from_search(json.loads((out / "summary.json").read_text())["results"])
        else:
            outcomes = from_answers(lines_of(out / "results.jsonl"), evaluation)
        self.found.setdefault(f"{arm.name}/{evaluation.name}", {})[unit.seed] = outcomes

    def tasks(self, *ways, level=None):
        """Those that every seed of all of these has an outcome of."""
        sets = [set(outcomes) for way in ways for outcomes in self.found[way].values()]
        return (
            sorted(task for task in set.intersection(*sets) if level is None or task.startswith(f"L{level}_"))
            if sets
            else []
        )

    def asked(self, measure, *ways, level=None):
        """The tasks that the measure is of: none, of speed, where nothing was timed."""
        return self.tasks(*ways, level=level) if self.timed or measure not in RATIOS else []

    def matrix(self, way, tasks, measure):
        return [
            [MEASURES[measure](outcomes[task], self.compiler.get(task)) for task in tasks]
            for _, outcomes in sorted(self.found[way].items())
        ]

    def interval(self, way, measure, level=None):
        """None where nothing has a weight."""
        key = way, measure, level
        if key not in self.known:
            tasks = self.asked(measure, way, level=level)
            self.known[key] = interval(self.matrix(way, tasks, measure)) if tasks else None
        return self.known[key]

    def difference(self, one, other, measure):
        key = one, other, measure
        if key not in self.known:
            tasks = self.asked(measure, one, other)
            self.known[key] = (
                difference(self.matrix(one, tasks, measure), self.matrix(other, tasks, measure))
                if tasks
                else None
            )
        return self.known[key]


def evaluation_of(table, way):
    arm, name = way.split("/")
    return next(e for a in table.arms if a.name == arm for e in a.units[0].evaluations if e.name == name)
