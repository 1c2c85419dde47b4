#!/usr/bin/env python3
"""Fits the constants of the compiler's cost model (codegen/estimate.h) to measured times.

    nereid choices tasks.jsonl -o measured
    .venv/bin/python tools/fit_cost_model.py measured/choices.jsonl             report
    .venv/bin/python tools/fit_cost_model.py measured/choices.jsonl --write     and write the table, if it is
                                                                                better

Programs are split by their hash: constants are fitted on one part, and both the old and the new ones are
judged on the other. Reported are Spearman's rank correlation of modelled and measured seconds (mean over
programs, and over all choices together) and the regret of the choice that the model ranks first: its seconds
over those of the fastest choice, geometric mean. Intervals are bootstrap intervals over programs, 95 %.
Choices that leave operators to PyTorch are not counted. Exit code 1: the fit is worse on held-out programs,
by either measure; nothing is written then. Exit code 2: bad input.

The loss is the mean squared error of log seconds: within a program, which decides its ranks, and a quarter of
it over all, which keeps the seconds right.
"""

import argparse
import datetime
import hashlib
import json
import math
import pathlib
import re
import sys

import numpy as np

TABLE = pathlib.Path(__file__).parent.parent / "src/nereid/compiler/ir/cost_constants.inc"
# Lowest and highest of each; where the lowest is 0, the constant may be left out of the model.
BOUNDS = {
    "launch_seconds": (2e-7, 2e-5),
    "bandwidth_share": (0.1, 1.2),
    "cache_ratio": (1, 64),
    "tensor_share": (0.02, 1),
    "vector_share": (0.02, 1.2),
    "wave_seconds": (0, 5e-5),
    "thread_seconds": (0, 1e-6),
}
SMALLEST = {"wave_seconds": 1e-9, "thread_seconds": 1e-12}  # above 0
FEATURES = "read written asked products rate other_flops programs width elements launches fixed".split()
ALL_SHARE = 0.25  # of the loss: errors that all choices of a program share
STEPS = (3, 1.7, 1.25, 1.08, 1.02)  # of the search, factors


def bad_input(text):
    print(f"fit_cost_model: {text}", file=sys.stderr)
    sys.exit(2)


class Times:
    """Kernels of all choices, which choice each is of, and which program each choice is of."""

    def __init__(self, programs):
        kernels, of_choice, seconds, of_program, own = [], [], [], [], []
        for p, choices in enumerate(programs):
            for choice in choices:
                for kernel in choice["features"]:
                    kernels.append([float(kernel[name]) for name in FEATURES])
                    of_choice.append(len(seconds))
                seconds.append(choice["seconds"])
                of_program.append(p)
                own.append(choice["own"])
        self.kernels = {name: np.array([k[i] for k in kernels]) for i, name in enumerate(FEATURES)}
        self.of_choice = np.array(of_choice, dtype=int)
        self.seconds = np.array(seconds)
        self.of_program = np.array(of_program, dtype=int)
        self.own = np.array(own, dtype=bool)
        self.programs = len(programs)


def modelled(times, constants, peaks):
    """Seconds of each choice: `seconds_of` in codegen/estimate.cpp."""
    k, c = times.kernels, constants
    memory = (np.maximum(k["read"], k["asked"] / c["cache_ratio"]) + k["written"]) / (
        peaks["bytes"] * c["bandwidth_share"]
    )
    arithmetic = k["products"] / (k["rate"] * c["tensor_share"]) + k["other_flops"] / (
        peaks["f32"] * c["vector_share"]
    )
    waves = np.ceil(k["programs"] / k["width"])
    idle = waves / (k["programs"] / k["width"])
    kernels = (
        k["fixed"]
        + k["launches"] * c["launch_seconds"]
        + np.maximum(memory, arithmetic) * idle
        + waves * (c["wave_seconds"] + k["elements"] * c["thread_seconds"])
    )
    return np.bincount(times.of_choice, kernels, minlength=len(times.seconds))


def loss_of(times, constants, peaks):
    error = np.log(modelled(times, constants, peaks)) - np.log(times.seconds)
    counts = np.bincount(times.of_program, minlength=times.programs)
    means = np.bincount(times.of_program, error, minlength=times.programs) / counts
    within = error - means[times.of_program]
    weights = 1 / counts[times.of_program]  # each program counts as much
    return float(np.sum(weights * (within**2 + ALL_SHARE * error**2)) / times.programs)


def candidates(name, value, factor):
    low, high = BOUNDS[name]
    if value == 0:
        yield from (SMALLEST[name] * 10**i for i in range(5))
        return
    yield min(value * factor, high)
    smaller = value / factor
    if low == 0 and smaller < SMALLEST[name]:
        smaller = 0
    yield max(smaller, low)


def fitted(times, start, peaks, keep=()):
    """Coordinate by coordinate, in steps that become smaller, until no step helps."""
    best = dict(start)
    least = loss_of(times, best, peaks)
    for factor in STEPS:
        better = True
        while better:
            better = False
            for name in sorted(set(BOUNDS) - set(keep), key=list(BOUNDS).index):
                for value in candidates(name, best[name], factor):
                    loss = loss_of(times, best | {name: value}, peaks)
                    if loss < least * (1 - 1e-9):
                        best[name], least, better = value, loss, True
    return best


def ranks(values):
    """From 0; equal values share their mean rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    result = np.empty(len(values))
    begin = 0
    while begin < len(values):
        end = begin
        while end < len(values) and ordered[end] <= ordered[begin] * (1 + 1e-9):
            end += 1
        result[order[begin:end]] = (begin + end - 1) / 2
        begin = end
    return result


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    a, b = a - a.mean(), b - b.mean()
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm > 0 else 0.0


def interval(values):
    values = np.asarray(values)
    rng = np.random.default_rng(1)
    means = values[rng.integers(0, len(values), (1000, len(values)))].mean(axis=1)
    return [float(x) for x in np.quantile(means, (0.025, 0.975))]


def judged(times, constants, peaks):
    predicted = modelled(times, constants, peaks)
    correlations, regrets, own = [], [], []
    for p in range(times.programs):
        of = times.of_program == p
        seconds, guess = times.seconds[of], predicted[of]
        correlations.append(spearman(guess, seconds))
        regrets.append(math.log(seconds[int(np.argmin(guess))] / seconds.min()))
        if times.own[of].any():
            own.append(math.log(seconds[times.own[of]][0] / seconds.min()))
    exp = lambda logs: math.exp(float(np.mean(logs))) - 1
    return {
        "spearman": float(np.mean(correlations)),
        "spearman_interval": interval(correlations),
        "spearman_pooled": spearman(predicted, times.seconds),
        "regret": exp(regrets),
        "regret_interval": [math.exp(x) - 1 for x in interval(regrets)],
        "regret_of_own": exp(own) if own else None,
        "log_error": float(np.sqrt(np.mean((np.log(predicted) - np.log(times.seconds)) ** 2))),
    }


def read(files):
    """[(key, target, device, peaks, choices)] of programs with at least three timed choices."""
    programs = []
    for file in files:
        for number, text in enumerate(file.read_text().splitlines(), 1):
            try:
                line = json.loads(text)
                if "left_out" in line or line["device"] is None:
                    continue
                choices = [
                    {
                        "features": choice["features"],
                        "seconds": choice["seconds"],
                        "own": choice.get("first", False),
                    }
                    for choice in line["choices"]
                    if "seconds" in choice and choice["features"] and not choice["kept"]
                ]
                key = str(line.get("structure") or line.get("hash") or line["id"])
                if len(choices) >= 3:
                    programs.append((key, line["target"], line["device"], line["peaks"], choices))
            except (json.JSONDecodeError, KeyError, TypeError) as wrong:
                bad_input(f"{file}:{number}: expected a line of `nereid choices`, got {wrong!r}")
    return programs


def read_table(path):
    rows = {}
    for target, body in re.findall(r'\{"(\w+)",\s*\{(.*?)\}\}', path.read_text(), re.DOTALL):
        row = dict(re.findall(r"\.(\w+) = ([^,\n}]+|\"[^\"]*\")", body))
        rows[target] = {
            name: value.strip('"') if name in ("date", "source") else float(value)
            for name, value in row.items()
        }
    if not rows or any(set(BOUNDS) - set(row) for row in rows.values()):
        bad_input(f"{path}: expected a row of constants for each target")
    return rows


def write_table(path, rows):
    text = '// Written by tools/fit_cost_model.py (docs/compiler.md, "The cost model\'s constants").\n'
    for target, row in rows.items():
        fields = [f".{name} = {row[name]:.4g}" for name in BOUNDS]
        fields += [f'.date = "{row["date"]}"', f'.source = "{row["source"]}"']
        text += f'{{"{target}",\n {{' + ",\n  ".join(fields) + "}},\n"
    path.write_text(text)


def is_held_out(key, share):
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) < share * 2**32


def report_text(report):
    lines = [
        f"{report['programs']} programs and {report['choices']} choices fitted, {report['held_out_programs']}"
        f" programs held out; {report['device']}"
    ]
    for when in ("before", "after"):
        of = report[when]
        low, high = of["spearman_interval"]
        lines.append(
            f"{when:>6}: Spearman {of['spearman']:.3f} a program ({low:.3f} to {high:.3f}), "
            f"{of['spearman_pooled']:.3f} pooled; regret of the model's first choice {of['regret']:.2%} "
            f"({of['regret_interval'][0]:.2%} to {of['regret_interval'][1]:.2%}); error of log seconds "
            f"{of['log_error']:.3f}"
        )
    if report["before"]["regret_of_own"] is not None:
        lines.append(f"regret of the compiler's own choice: {report['before']['regret_of_own']:.2%}")
    lines += [f"  {name} {report['old'][name]:.4g} -> {report['constants'][name]:.4g}" for name in BOUNDS]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--held-out", type=float, default=0.3, help="share of programs (0.3)")
    parser.add_argument(
        "--keep", nargs="*", default=[], choices=BOUNDS, help="constants that stay as they are"
    )
    parser.add_argument("--table", type=pathlib.Path, default=TABLE, help="file of constants")
    parser.add_argument("--write", action="store_true", help="write the table if the fit is not worse")
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")
    options = parser.parse_args()
    if not 0 < options.held_out < 1:
        parser.error(f"--held-out: expected a number between 0 and 1, got {options.held_out}")
    programs = read(options.files)
    kinds = {(target, device) for _, target, device, _, _ in programs}
    if len(kinds) != 1:
        bad_input(f"expected times of one target and device, got {sorted(kinds) or 'none'}")
    ((target, device),) = kinds
    rows = read_table(options.table)
    if target not in rows:
        bad_input(f"{options.table} has no row of {target}")
    peaks = programs[0][3]
    sides = [
        [choices for key, *_, choices in programs if is_held_out(key, options.held_out) == side]
        for side in (False, True)
    ]
    if not sides[0] or not sides[1]:
        bad_input(f"expected programs on both sides, got {len(sides[0])} and {len(sides[1])}")
    training, held_out = map(Times, sides)
    old = {name: rows[target][name] for name in BOUNDS}
    new = fitted(training, old, peaks, options.keep)
    new = {name: float(f"{value:.4g}") for name, value in new.items()}
    report = {
        "target": target,
        "device": device,
        "programs": training.programs,
        "held_out_programs": held_out.programs,
        "choices": len(training.seconds),
        "old": old,
        "constants": new,
        "before": judged(held_out, old, peaks),
        "after": judged(held_out, new, peaks),
    }
    before, after = report["before"], report["after"]
    report["worse"] = after["spearman"] < before["spearman"] or after["regret"] > before["regret"]
    print(json.dumps(report) if options.json else report_text(report))
    if report["worse"]:
        print("fit_cost_model: worse on held-out programs; nothing is written", file=sys.stderr)
        return 1
    if options.write:
        rows[target] = new | {
            "date": datetime.date.today().isoformat(),
            "source": f"{device}, {len(training.seconds)} choices of {training.programs} programs",
        }
        write_table(options.table, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
