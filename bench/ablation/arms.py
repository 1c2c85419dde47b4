"""The table of arms: a TOML file that names run files by what they differ in. Whatever is wrong in it is told with the file and the key."""
import copy
import dataclasses
import json
import pathlib
import tomllib


class Wrong(Exception):
    pass


@dataclasses.dataclass
class Evaluation:
    name: str
    tasks: str
    options: list
    serve: list
    model: bool


@dataclasses.dataclass
class Unit:
    """One arm with one seed."""
    arm: str
    seed: int
    program: str  # "rl", "sft", or "none": nothing is trained
    run: dict     # the run file's tables
    evaluations: list

    @property
    def name(self):
        return f"{self.arm}/seed-{self.seed}"

    @property
    def rollouts_a_step(self):
        rl = self.run.get("rl", {})
        return rl.get("prompts_per_step", 8) * rl.get("samples", 8)

    def run_file(self):
        return toml({**self.run, "seed": self.seed, "name": f"{self.arm}-{self.seed}"})


@dataclasses.dataclass
class Arm:
    name: str
    says: str
    units: list


@dataclasses.dataclass
class Table:
    arms: list
    comparisons: list  # (question, [(one, other)]), each "arm/evaluation"
    rollouts: int | None
    seconds: float | None

    @property
    def units(self):
        """Seed by seed: what is cut short has whole rows."""
        return sorted((unit for arm in self.arms for unit in arm.units), key=lambda unit: unit.seed)


def toml(tables):
    """Of what run files hold: scalars and lists of them, in tables of one level. JSON's text of these is TOML's, too."""
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
            raise Wrong(f"{where}: {key}: expected {getattr(known[key], '__name__', 'a number')}, got {json.dumps(value)}")
    return {key: table.get(key) for key in known}


def evaluations_of(path, tables):
    found = {}
    for name, table in tables.items():
        where = f"{path}: evaluations.{name}"
        keys = keys_of(where, table, {"tasks": str, "options": list, "serve": list, "model": bool}, ["tasks"])
        found[name] = Evaluation(name, keys["tasks"], keys["options"] or [], keys["serve"] or [], keys["model"] is not False)
    return found


def changed(where, run, differences, without):
    run = copy.deepcopy(run)
    for name in without:
        table, _, key = name.rpartition(".")
        if key not in (run.get(table, {}) if table else run):
            raise Wrong(f"{where}: without: the base has no '{name}'")
        del (run[table] if table else run)[key]
    for table, keys in differences.items():
        if isinstance(keys, dict):
            run.setdefault(table, {}).update(keys)
        else:
            run[table] = keys
    return run


def with_compute(where, unit, rollouts, seconds):
    if unit.program == "none":
        return
    schedule = unit.run.setdefault("schedule", {})
    if seconds is not None:
        if schedule.get("kind", "constant") != "constant":
            raise Wrong(f"{where}: compute.seconds ends a run wherever it is, so schedule.kind has to be constant, got {schedule['kind']}")
        return
    if unit.program != "rl":
        raise Wrong(f"{where}: program {unit.program} writes no rollouts: equal compute has to be given as compute.seconds")
    if rollouts % unit.rollouts_a_step:
        raise Wrong(f"{where}: compute.rollouts: expected a multiple of {unit.rollouts_a_step} (prompts_per_step * samples), got {rollouts}")
    schedule["steps"] = rollouts // unit.rollouts_a_step


def arm_of(path, table, whole, evaluations):
    where = f"{path}: arms.{table.get('name', '?')}"
    keys = keys_of(where, table, {"name": str, "says": str, "base": str, "train": str, "seeds": list, "differences": dict,
                                  "without": list, "evaluations": list}, ["name"])
    name, program = keys["name"], keys["train"] or "rl"
    if not name.replace("_", "").replace("-", "").isalnum():
        raise Wrong(f"{where}: name: expected letters, digits, _ and -, got {json.dumps(name)}")
    if program not in ("rl", "sft", "none"):
        raise Wrong(f"{where}: train: expected rl, sft or none, got {json.dumps(program)}")
    asked = keys["evaluations"] if keys["evaluations"] is not None else list(evaluations)[:1]
    for evaluation in asked:
        if evaluation not in evaluations:
            raise Wrong(f"{where}: evaluations: expected some of {', '.join(evaluations)}, got {json.dumps(evaluation)}")
    base = keys["base"] or whole["base"]
    if base is None:
        raise Wrong(f"{where}: expected a base, here or for all arms, got nothing")
    run = changed(where, load(pathlib.Path(path).parent / base), keys["differences"] or {}, keys["without"] or [])
    units = []
    for seed in keys["seeds"] or whole["seeds"] or [1]:
        unit = Unit(name, seed, program, copy.deepcopy(run), [evaluations[e] for e in asked])
        with_compute(where, unit, whole["rollouts"], whole["seconds"])
        units.append(unit)
    return Arm(name, keys["says"] or "", units)


def comparisons_of(path, tables, arms):
    ways = {f"{arm.name}/{e.name}" for arm in arms for e in arm.units[0].evaluations}
    first = {arm.name: f"{arm.name}/{arm.units[0].evaluations[0].name}" for arm in arms if arm.units[0].evaluations}
    found = []
    for table in tables:
        keys = keys_of(f"{path}: comparisons", table, {"question": str, "pairs": list}, ["question", "pairs"])
        pairs = [tuple(first.get(side, side) for side in pair) for pair in keys["pairs"]]
        for side in (side for pair in pairs for side in pair):
            if side not in ways:
                raise Wrong(f"{path}: comparisons: expected an arm, or arm/evaluation of {', '.join(sorted(ways))}, got {json.dumps(side)}")
        found.append((keys["question"], pairs))
    return found


def read_table(path):
    document = load(path)
    keys = keys_of(path, document, {"base": str, "seeds": list, "compute": dict, "evaluations": dict, "arms": list, "comparisons": list},
                   ["compute", "arms"])
    compute = keys_of(f"{path}: compute", keys["compute"], {"rollouts": int, "seconds": (int, float)})
    if (compute["rollouts"] is None) == (compute["seconds"] is None):
        raise Wrong(f"{path}: compute: expected either rollouts or seconds")
    if min(compute["rollouts"] or 1, compute["seconds"] or 1) <= 0:
        raise Wrong(f"{path}: compute: expected a number above 0, got {json.dumps(keys['compute'])}")
    evaluations = evaluations_of(path, keys["evaluations"] or {})
    arms = [arm_of(path, table, {**keys, **compute}, evaluations) for table in keys["arms"]]
    names = [arm.name for arm in arms]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"{path}: arms: two are called {name}")
    return Table(arms, comparisons_of(path, keys["comparisons"] or [], arms), compute["rollouts"], compute["seconds"])
