"""Tables, plots and answers in words of what ablation.py left.

report.py ARMS.toml FOLDER -o OUT     OUT/results.md and OUT/*.svg
"""

import argparse
import pathlib
import sys

import fingerprint
import forest
import words
from arms import Wrong, read_table
from files import FAILED, TRAINED
from measures import MEASURES, RATIOS, Evaluated, evaluation_of, formatted
from rules import without_rules
from training import plots, training

COMPARED = (
    "Verified",
    "Verified as drawn",
    "speed, eager's where not Verified",
    "speed of large tasks, eager's where not Verified",
    "speed relative to the compiler's",
)


PICTURED = {
    "Verified": "verified",
    "speed, eager's where not Verified": "speed",
    "speed relative to the compiler's": "relative_to_compiler",
}  # and the ends of files' names
SEEDS = 3  # trainings of an arm below which the report says so


def heading(measure, compared=False):
    return f"{measure}, {'times' if measure in RATIOS else 'points' if compared else '%'}"


def rows(header, body):
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in body),
        "",
    ]


def outcomes_table(evaluated, table, ways):
    """One line an arm; measures that no arm has are omitted."""
    says = {
        f"{arm.name}/{e.name}": "; ".join(filter(None, (arm.says, e.says)))
        for arm in table.arms
        for e in arm.units[0].evaluations
    }
    ways = [way for way in says if way in ways and way in evaluated.found]
    measures = [
        m
        for m in MEASURES
        if any(evaluated.interval(way, m) is not None for way in ways) and m != "refused by a rule"
    ]
    levels = sorted({level for way in ways for level in evaluation_of(table, way).levels}) if ways else []
    body = []
    for way in ways:
        cells = [formatted(m, evaluated.interval(way, m)) for m in measures]
        by_level = [formatted("Verified", evaluated.interval(way, "Verified", level)) for level in levels]
        body.append(
            [
                way,
                says[way],
                str(len(evaluated.found[way])),
                str(len(evaluated.tasks(way))),
                cells[0],
                *by_level,
                *cells[1:],
            ]
        )
    if not body:
        return ["Nothing is evaluated yet.", ""]
    return rows(
        [
            "arm/evaluation",
            "what it is",
            "seeds",
            "tasks",
            heading(measures[0]),
            *(f"operators={level}" for level in levels),
            *map(heading, measures[1:]),
        ],
        body,
    )


def differences_table(evaluated, compared, measures):
    body = [
        [
            f"{one} - {other}",
            str(len(evaluated.tasks(one, other))),
            *(formatted(m, found[m], True) for m in measures),
        ]
        for one, other, found in compared
    ]
    return rows(["difference", "tasks of both", *(heading(m, True) for m in measures)], body)


def names_of(ways):
    """An arm's name alone where it is looked at in one way."""
    arms = {way: way.split("/")[0] for way in ways}
    return {way: arm if list(arms.values()).count(arm) == 1 else way for way, arm in arms.items()}


def answer(evaluated, table, folder, question, pairs):
    ways = {side for pair in pairs for side in pair}
    lines = [f"## {question}", ""]
    pairs = [pair for pair in pairs if all(side in evaluated.found for side in pair)]
    unruled = [
        arm
        for arm in table.arms
        if arm.units[0].run.get("rl", {}).get("rule_reward") is False
        and any(way.split("/")[0] == arm.name for way in ways)
    ]
    measures = (*COMPARED, "refused by a rule") if unruled else COMPARED
    compared = [
        (one, other, {m: evaluated.difference(one, other, m) for m in measures}) for one, other in pairs
    ]
    measures = [m for m in measures if any(found[m] is not None for _, _, found in compared)]
    names = names_of(ways)
    done = trainings_done(folder, table)
    once = (
        sorted({way.split("/")[0] for pair in pairs for way in pair if done.get(way.split("/")[0]) == 1})
        if set(done.values()) != {1}
        else []
    )
    said = [(names[one], names[other], {m: found[m] for m in measures}) for one, other, found in compared]
    lines += [
        words.in_short(said),
        "",
        *(f"* {words.of_pair(*pair)}" for pair in said),
        *([""] if said else []),
    ]
    if once:
        lines += [
            (
                f"Of {words.listed(f'`{arm}`' for arm in once)} there is one"
                f" training{' each' * (len(once) > 1)}: what is shown of it is of that training's answers,"
                " not of the arm."
            ),
            "",
        ]
    lines += outcomes_table(evaluated, table, ways)
    if compared and measures:
        lines += differences_table(evaluated, compared, measures)
    for arm in unruled:
        lines += without_rules(folder, table, arm, [way.split("/")[0] for way in ways], rows)
    return lines


def pictures(evaluated, table, out):
    """Of the measures in PICTURED each way's mean, and each difference that a question asks for, with their
    intervals."""
    lines = []
    pairs = list(
        dict.fromkeys(
            (one, other)
            for _, pairs in table.comparisons
            for one, other in pairs
            if one in evaluated.found and other in evaluated.found
        )
    )
    names, ratio_form = names_of(evaluated.found), "{:.3f}"
    for measure, end in PICTURED.items():
        ratio = measure in RATIOS
        form = ratio_form if ratio else "{:.1f}"
        for kind, naught, rows_ in (
            (
                "arms",
                1 if measure == "speed relative to the compiler's" else None,
                [(names[way], evaluated.interval(way, measure)) for way in evaluated.found],
            ),
            (
                "differences",
                1 if ratio else 0,
                [
                    (f"{names[one]} - {names[other]}", evaluated.difference(one, other, measure))
                    for one, other in pairs
                ],
            ),
        ):
            known = [(name, *forest.scaled(found, ratio)) for name, found in rows_ if found is not None]
            if known:
                name = f"{kind}_{end}.svg"
                says = measure if kind == "arms" else f"differences: {measure}"
                (out / name).write_text(
                    forest.svg(
                        says,
                        f"{heading(measure, kind == 'differences').removeprefix(measure + ', ')}, with 95 %"
                        " intervals",
                        known,
                        naught,
                        form,
                    )
                )
                lines += [f"![{says}]({name})", ""]
    return ["## With intervals", "", *lines] if lines else []


def trainings_done(folder, table):
    """{arm: how many}, of those that are trained."""
    return {
        arm.name: sum((folder / unit.name / TRAINED).exists() for unit in arm.units)
        for arm in table.arms
        if arm.units[0].program != "none"
    }


def seeds_in_words(table, folder):
    """Of how many trainings each arm is, where these are fewer than three."""
    done = trainings_done(folder, table)
    if not any(done.values()) or min(done.values()) >= SEEDS:
        return []
    if set(done.values()) == {1}:
        return [
            (
                "Each arm was trained once (one seed). So the intervals are of tasks alone: they do not say"
                " how another training would have come out, and what is bold is a difference of two"
                " trainings, not yet of two arms."
            ),
            "",
        ]
    by_count = {}
    for arm, count in done.items():
        by_count.setdefault(count, []).append(f"`{arm}`")
    said = [
        f"{words.listed(arms)} {'has' if len(arms) == 1 else 'have'} {count or 'none'}"
        for count, arms in sorted(by_count.items(), reverse=True)
    ]
    few = (
        " Of one training the interval is of tasks alone: it does not say how another would have come out."
        if 1 in by_count
        else ""
    )
    return [f"Trainings (seeds) that are done: {'; '.join(said)}.{few}", ""]


def head(evaluated, table, folder):
    trained = [unit for arm in table.arms for unit in arm.units if unit.program != "none"]
    done = sum(trainings_done(folder, table).values())
    commits = fingerprint.commits(folder, table)
    made = f" Programs of commit{'s' * (len(commits) > 1)} {words.listed(commits)}." if commits else ""
    lines = [
        "# Ablation: results",
        "",
        (
            "Written by `bench/ablation/report.py`, its words too; `docs/ablation.md` says what the arms are"
            " and how to read this."
        ),
        "",
        (
            f"{listed_machines(evaluated.machines)}{made} {done} trainings of {len(trained)} that are"
            " planned, each with as much compute as those that it is compared with"
            f" ({' or '.join(sorted({str(unit.compute) for unit in trained}))}). Means with 95 % bootstrap"
            " intervals over seeds and tasks; in tables of differences those are bold whose interval does"
            " not hold zero (or 1, of ratios)."
        ),
        "",
    ]
    if len(evaluated.machines) > 1:
        lines += ["These are of several machines: times are not comparable.", ""]
    if not evaluated.timed:
        lines += ["Nothing was timed there: it says nothing of speed.", ""]
    lines += seeds_in_words(table, folder)
    if evaluated.missing:
        lines += [f"Nothing yet of {words.listed(f'`{way}`' for way in evaluated.missing)}.", ""]
    failed = [
        (unit.name, (folder / unit.name / FAILED).read_text().strip())
        for arm in table.arms
        for unit in arm.units
        if (folder / unit.name / FAILED).exists()
    ]
    if failed:
        lines += [f"Failed: {'; '.join(f'{name} ({why[:200]})' for name, why in failed)}.", ""]
    return lines


def listed_machines(machines):
    return f"On {', '.join(sorted(machines))}." if machines else "Nothing has run yet."


def chance(evaluated, table):
    """How many differences were looked at: some leave zero out by chance."""
    found = [
        d
        for _, pairs in table.comparisons
        for one, other in pairs
        if one in evaluated.found and other in evaluated.found
        for d in (evaluated.difference(one, other, m) for m in COMPARED)
        if d is not None
    ]
    if not found:
        return []
    return [
        (
            f"{len(found)} differences are looked at below. Where there was none at all,"
            f" {0.05 * len(found):.0f} of them would be bold by chance, and with three seeds or fewer more,"
            " for the interval of few seeds is too narrow."
        ),
        "",
    ]


def report(folder, table, out):
    out.mkdir(parents=True, exist_ok=True)
    evaluated = Evaluated(folder, table)
    lines = [*head(evaluated, table, folder), *chance(evaluated, table)]
    for question, pairs in table.comparisons:
        lines += answer(evaluated, table, folder, question, pairs)
    lines += pictures(evaluated, table, out)
    lines += ["## How it was trained", "", *training(folder, table, rows), *plots(folder, table, out)]
    (out / "results.md").write_text("\n".join(lines).rstrip("\n") + "\n")
    return lines


def short(folder, table):
    """A few lines for a terminal."""
    evaluated = Evaluated(folder, table)
    measures = ("Verified", "Verified as drawn", "refused by a rule", *RATIOS[1:])
    print(f"{'arm/evaluation':18} seeds tasks " + " ".join(f"{m[:22]:>24}" for m in measures))
    for way, seeds in evaluated.found.items():
        print(
            f"{way:18} {len(seeds):5} {len(evaluated.tasks(way)):5} "
            + " ".join(f"{formatted(m, evaluated.interval(way, m)):>24}" for m in measures)
        )
    print(
        f"not finished: {len(evaluated.unfinished)} of"
        f" {sum(len(unit.evaluations) for arm in table.arms for unit in arm.units)} evaluations"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arms")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, help="where to write; without it a short table is printed"
    )
    asked = parser.parse_args()
    try:
        table = read_table(asked.arms)
        if strangers := fingerprint.mixed(asked.folder, table):
            raise Wrong("; ".join(strangers))
        if asked.output:
            report(asked.folder, table, asked.output)
        else:
            short(asked.folder, table)
    except Wrong as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
