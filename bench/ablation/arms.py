"""The table of arms: a TOML file that names run files by what they differ in. Errors name the file and the
key."""

import copy
import dataclasses
import json
import pathlib
import tomllib


class Wrong(Exception):
    pass


@dataclasses.dataclass
class Evaluation:
    """How a model is evaluated. `program` "answers": bench/small_model/evaluate.py; "search": nereid eval."""

    name: str
    says: str
    program: str
    tasks: str  # the folder of level1.jsonl, ... and of the compiler's answers, which all units share
    levels: list
    count: int  # of each level, the first so many
    large: int  # likewise, of level1-large.jsonl, ...; of answers alone
    samples: int
    answer: str  # what counts as a task's answer: "greedy", or "best" of the samples
    model: bool  # False: the compiler alone
    options: list


@dataclasses.dataclass
class Compute:
    """What a unit may use: one of these. Seconds are of its steps, as the run measured them."""

    rollouts: int | None = None
    seconds: float | None = None
    steps: int | None = None

    def __str__(self):
        return next(f"{value:g} {kind}" for kind, value in vars(self).items() if value is not None)


@dataclasses.dataclass
class Unit:
    """One arm with one seed."""

    arm: str
    seed: int
    turn: int  # when it is run: its seed, and its arm's `after`
    program: str  # "rl", "sft", or "none": nothing is trained
    run: dict  # the run file's tables
    compute: Compute
    evaluations: list
    takes: float = 0  # seconds of a GPU by the wall's clock, as estimated

    @property
    def name(self):
        return f"{self.arm}/seed-{self.seed}"

    @property
    def ends_itself(self):
        """With its seconds, rather than where it is interrupted."""
        return "seconds" in self.run.get("schedule", {})

    @property
    def rollouts_a_step(self):
        rl = self.run.get("rl", {})
        return rl.get("prompts_per_step", 8) * rl.get("samples", 8)

    @property
    def asks_model(self):
        return self.program != "none" or any(e.model for e in self.evaluations)

    def run_file(self):
        what = f"# {self.compute}\n" if self.program != "none" else ""
        return what + toml({**self.run, "seed": self.seed, "name": f"{self.arm}-{self.seed}"})


@dataclasses.dataclass
class Arm:
    name: str
    says: str
    units: list


@dataclasses.dataclass
class Table:
    arms: list
    comparisons: list  # (question, [(one, other)]), each "arm/evaluation"
    compute: Compute  # of arms that name none of their own
    assets: str  # a folder with the tokenizer.json and the prompts of all models
    wall: float  # seconds of a training or an evaluation, by the wall's clock: what takes longer is given up

    @property
    def units(self):
        """Turn by turn: what is cut short has whole rows."""
        return sorted((unit for arm in self.arms for unit in arm.units), key=lambda unit: unit.turn)


def toml(tables):
    """Of what run files hold: scalars and lists of them, in tables of one level. JSON's text of these is
    TOML's, too."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    for name, keys in tables.items():
        if isinstance(keys, dict):
            lines += ["", f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def load(path):
    try:
        return tomllib.loads(pathlib.Path(path).read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise Wrong(f"{path}: {error}") from None


def keys_of(where, table, known, required=()):
    """`known`: a type or some for each key. The table, with None for what is absent."""
    for key in table:
        if key not in known:
            raise Wrong(f"{where} has no key '{key}'; it has {', '.join(sorted(known))}")
    for key in required:
        if key not in table:
            raise Wrong(f"{where}: expected {key}, got nothing")
    for key, value in table.items():
        if not isinstance(value, known[key]) or isinstance(value, bool) and known[key] is not bool:
            raise Wrong(
                f"{where}: {key}: expected {getattr(known[key], '__name__', 'a number')}, got"
                f" {json.dumps(value)}"
            )
    return {key: table.get(key) for key in known}


def one_of(where, key, value, words):
    if value not in words:
        raise Wrong(f"{where}: {key}: expected one of {', '.join(words)}, got {json.dumps(value)}")
    return value


def evaluations_of(path, tables):
    found = {}
    for name, table in tables.items():
        where = f"{path}: evaluations.{name}"
        keys = keys_of(
            where,
            table,
            {
                "says": str,
                "program": str,
                "tasks": str,
                "levels": list,
                "count": int,
                "large": int,
                "samples": int,
                "answer": str,
                "model": bool,
                "options": list,
            },
            ["tasks", "levels", "count"],
        )
        program = one_of(where, "program", keys["program"] or "answers", ["answers", "search"])
        answer = one_of(
            where,
            "answer",
            keys["answer"] or ("best" if program == "search" else "greedy"),
            ["greedy", "best"],
        )
        samples = keys["samples"] or 0
        if (program, answer) == ("search", "greedy"):
            raise Wrong(f"{where}: answer: a search's is its best")
        if answer == "best" and samples < 1:
            raise Wrong(f"{where}: samples: expected at least 1, of which the best is taken, got {samples}")
        large = keys["large"] or 0
        if keys["count"] < 1 or samples < 0 or large < 0:
            raise Wrong(
                f"{where}: expected a count above 0, samples and large that are not below it, got"
                f" {keys['count']}, {samples} and {large}"
            )
        if program == "search" and large:
            raise Wrong(f"{where}: large: a search takes small tasks alone")
        found[name] = Evaluation(
            name,
            keys["says"] or "",
            program,
            keys["tasks"],
            keys["levels"],
            keys["count"],
            large,
            samples,
            answer,
            keys["model"] is not False,
            keys["options"] or [],
        )
    return found


def compute_of(where, table):
    keys = keys_of(where, table, {"rollouts": int, "seconds": (int, float), "steps": int})
    given = [value for value in keys.values() if value is not None]
    if len(given) != 1:
        raise Wrong(f"{where}: expected one of rollouts, seconds and steps")
    if given[0] <= 0:
        raise Wrong(f"{where}: expected a number above 0, got {json.dumps(table)}")
    return Compute(**keys)


# What [rl] has for one objective and not for another (docs/rl.md).
OWN = {
    "grpo": {"baseline", "clip"},
    "hrd": {"baseline", "clip", "alpha", "uniform_reward", "speedup_limit", "incorrect_penalty"},
    "best": {"clip", "speedup_limit", "incorrect_penalty", "plan_incorrect_penalty"},
    "drpo": {"lambda", "tau", "beta", "delta"},
}


def changed(where, run, differences, without, where_there=False):
    """Another objective leaves the other ones' keys out by itself. `where_there`: what is to be left out may
    be missing."""
    run = copy.deepcopy(run)
    for name in without:
        table, _, key = name.rpartition(".")
        if key in (run.get(table, {}) if table else run):
            del (run[table] if table else run)[key]
        elif not where_there:
            raise Wrong(f"{where}: without: the base has no '{name}'")
    objective = differences.get("rl", {}).get("objective")
    for key in set.union(*OWN.values()) - OWN.get(objective, set()) if objective else ():
        run.get("rl", {}).pop(key, None)
    for table, keys in differences.items():
        if isinstance(keys, dict):
            run.setdefault(table, {}).update(keys)
        else:
            run[table] = keys
    return run


def with_compute(where, unit):
    """The run file's schedule follows from what the unit may use."""
    if unit.program == "none":
        return
    schedule, compute = unit.run.setdefault("schedule", {}), unit.compute
    kind = schedule.get("kind", "constant")
    if compute.seconds is not None and unit.program == "rl" and kind == "cosine":
        schedule.pop("steps", None)
        schedule["seconds"] = compute.seconds
    elif compute.seconds is not None:
        if kind != "constant":
            raise Wrong(
                f"{where}: compute.seconds ends a run wherever it is, so schedule.kind has to be constant, or"
                f" cosine in reinforcement learning, got {kind}"
            )
        schedule.pop("seconds", None)
    elif compute.steps is not None:
        schedule.pop("seconds", None)
        schedule["steps"] = compute.steps
    elif unit.program != "rl":
        raise Wrong(
            f"{where}: program {unit.program} writes no rollouts: equal compute has to be given as"
            " compute.seconds or compute.steps"
        )
    elif compute.rollouts % unit.rollouts_a_step:
        raise Wrong(
            f"{where}: compute.rollouts: expected a multiple of {unit.rollouts_a_step} (prompts_per_step *"
            f" samples), got {compute.rollouts}"
        )
    else:
        schedule.pop("seconds", None)
        schedule["steps"] = compute.rollouts // unit.rollouts_a_step


def arm_of(path, table, whole, compute, evaluations):
    where = f"{path}: arms.{table.get('name', '?')}"
    keys = keys_of(
        where,
        table,
        {
            "name": str,
            "says": str,
            "base": str,
            "train": str,
            "seeds": list,
            "compute": dict,
            "differences": dict,
            "without": list,
            "evaluations": list,
            "after": int,
            "takes": (int, float),
        },
        ["name"],
    )
    name = keys["name"]
    if not name.replace("_", "").replace("-", "").isalnum():
        raise Wrong(f"{where}: name: expected letters, digits, _ and -, got {json.dumps(name)}")
    program = one_of(where, "train", keys["train"] or "rl", ["rl", "sft", "none"])
    asked = keys["evaluations"] if keys["evaluations"] is not None else list(evaluations)[:1]
    for evaluation in asked:
        one_of(where, "evaluations", evaluation, list(evaluations))
    base = keys["base"] or whole["base"]
    if base is None:
        raise Wrong(f"{where}: expected a base, here or for all arms, got nothing")
    run = load(pathlib.Path(path).parent / base)
    if keys["base"] is None:  # differences of all are from the base of all
        run = changed(path, run, whole["differences"] or {}, whole["without"] or [], where_there=True)
    run = changed(where, run, keys["differences"] or {}, keys["without"] or [])
    compute = compute_of(f"{where}: compute", keys["compute"]) if keys["compute"] else compute
    units, takes = [], keys["takes"] if keys["takes"] is not None else whole["takes"] or 0
    if takes < 0:
        raise Wrong(f"{where}: takes: expected seconds, got {takes:g}")
    for seed in keys["seeds"] or whole["seeds"] or [1]:
        unit = Unit(
            name,
            seed,
            seed + (keys["after"] or 0),
            program,
            copy.deepcopy(run),
            compute,
            [evaluations[e] for e in asked],
            takes,
        )
        with_compute(where, unit)
        units.append(unit)
    return Arm(name, keys["says"] or "", units)


def comparisons_of(path, tables, arms):
    ways = {f"{arm.name}/{e.name}" for arm in arms for e in arm.units[0].evaluations}
    first = {
        arm.name: f"{arm.name}/{arm.units[0].evaluations[0].name}" for arm in arms if arm.units[0].evaluations
    }
    found = []
    for table in tables:
        keys = keys_of(f"{path}: comparisons", table, {"question": str, "pairs": list}, ["question", "pairs"])
        pairs = [tuple(first.get(side, side) for side in pair) for pair in keys["pairs"]]
        for side in (side for pair in pairs for side in pair):
            if side not in ways:
                raise Wrong(
                    f"{path}: comparisons: expected an arm, or arm/evaluation of {', '.join(sorted(ways))},"
                    f" got {json.dumps(side)}"
                )
        found.append((keys["question"], pairs))
    return found


def read_table(path):
    document = load(path)
    keys = keys_of(
        path,
        document,
        {
            "base": str,
            "assets": str,
            "seeds": list,
            "wall": (int, float),
            "takes": (int, float),
            "compute": dict,
            "differences": dict,
            "without": list,
            "evaluations": dict,
            "arms": list,
            "comparisons": list,
        },
        ["compute", "arms"],
    )
    compute = compute_of(f"{path}: compute", keys["compute"])
    evaluations = evaluations_of(path, keys["evaluations"] or {})
    arms = [arm_of(path, table, keys, compute, evaluations) for table in keys["arms"]]
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"{path}: arms: two are called {name}")
    return Table(
        arms,
        comparisons_of(path, keys["comparisons"] or [], arms),
        compute,
        keys["assets"] or "model",
        keys["wall"] or float("inf"),
    )
