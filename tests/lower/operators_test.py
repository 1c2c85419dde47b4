"""Every operator through `nereid lower`, and what it wrote through `nereid verify --policy strict` on the
CPU.

    python tests/lower/operators_test.py NEREID [--all | --parts N] [--only TEXT] [--keep FOLDER]

Without --all: each case in float32 and, in turn, one of its variants. Exit code 1 names those that are not
Verified.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import algebra
import blocks
import families
import names
import operators
import uncommon

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from sample import sampled  # noqa: E402

# Not lowered yet, with the operator that stands in the way: a line goes when it is wrong.
NOT_YET = {
    "transformer_layer_train": (
        "scaled_dot_product_attention draws its dropout inside of a kernel of PyTorch's"
    )
}


# Cases with what their written files must mention, and must not.
PROMISES = algebra.CASES + families.CASES + blocks.CASES + uncommon.CASES
# Judged on their own inputs by torch.allclose: elements at which an overflow differs are not judged by the
# other protocol (docs/tolerance.md).
BY_ALLCLOSE = "_that_overflow"
# Products that are split only at sizes whose verdict takes 10 s of a core: judged a third as often as others.
LARGE = (
    *(
        f"family_{name}"
        for name in ("odd_parts", "long_not_split", "long_segments", "square_split", "one_long")
    ),
    "uncommon_two_programs_of_windows",
)


def chosen(args):
    cases = list(operators.cases())
    if args.all:
        picked = cases + [v for case in cases for v in operators.variants(case)] + list(operators.pairs())
    else:
        picked = list(cases)
    if args.only:
        picked = [case for case in picked if args.only in case.name or args.only == case.family]
    picked = sampled(picked, args.parts, lambda case: case.name)
    promised = [
        case for case, _, _ in PROMISES if not args.only or args.only in case.name or args.only == case.family
    ]
    # A twelfth is lowered, and a quarter of that, of the same parts, is verified: large sizes take long.
    parts = (12, 48, 144) if args.parts > 1 else (1, 1, 1)
    lowered, verified, large = (sampled(promised, n, lambda case: case.name) for n in parts)
    verified = [case for case in verified if not case.name.startswith(LARGE)]
    return picked + lowered, {case.name for case in picked + verified + large}


def broken_promises(written):
    """Rewrites that a written file does not mention, or mentions where they must not be."""
    for case, mentions, never in PROMISES:
        file = written / f"{case.name}.py"
        if not file.is_file():
            continue
        text = " ".join(file.read_text().split())
        if mentions and mentions not in text:
            yield case.name, f"expected a file that says: {mentions}"
        if never and never in text:
            yield case.name, f"expected no file that says: {never}"


def undefined_names(written):
    for file in written.glob("*.py"):
        for line, name in names.undefined(file.read_text()):
            yield file.stem, f"line {line}: {name} is not defined"


def run(command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--parts", type=int, default=1, help="run one of so many parts (tests/sample.py)")
    parser.add_argument("--only")
    parser.add_argument("--keep")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(args.keep or temporary).resolve()
        written = folder / "written"
        folder.mkdir(parents=True, exist_ok=True)
        cases, verified = chosen(args)
        picked = {case.name: case for case in cases}
        assert picked, "no such case"
        for case in picked.values():
            (folder / f"{case.name}.py").write_text(case.source())
        files = [folder / f"{name}.py" for name in picked]
        one = files if len(files) > 1 else files * 2
        lowered = run([args.nereid, "lower", *one, "-o", written, "--json"])
        lines = [json.loads(line) for line in lowered.stdout.splitlines()]
        failures = {
            pathlib.Path(line["file"]).stem: line["not_lowered"] for line in lines if "not_lowered" in line
        }
        to_judge = [n for n in picked if n not in failures]
        if lowered.returncode not in (0, 1):
            print(lowered.stderr[-2000:])
        pairs = folder / "pairs.jsonl"
        pairs.write_text(
            "".join(
                json.dumps(
                    {
                        "id": n,
                        "reference": str(folder / f"{n}.py"),
                        "candidate": str(written / f"{n}.py"),
                        "protocol": "kernelbench" if n.endswith(BY_ALLCLOSE) else "nereid",
                    }
                )
                + "\n"
                for n in to_judge
                if n in verified
            )
        )
        verdicts = folder / "verdicts.jsonl"
        verdicts.unlink(missing_ok=True)
        run(
            [args.nereid, "verify", "--batch", pairs, "-o", verdicts, "--policy", "strict", "--device", "cpu"]
        )
        for verdict in map(json.loads, verdicts.read_text().splitlines()):
            if verdict.get("verdict") != "Verified":
                failures[verdict["id"]] = f"{verdict.get('verdict')}: {verdict.get('reason')}"
            to_judge.remove(verdict["id"])
        failures.update({name: "no verdict" for name in to_judge if name in verified})
        failures.update(broken_promises(written))
        failures.update(undefined_names(written))
    unknown = {name: why for name, why in failures.items() if not name.startswith(tuple(NOT_YET))}
    for name, why in unknown.items():
        print(f"{name} [{picked[name].forward!r}]: {why}"[:400])
    stale = [name for name in NOT_YET if name in picked and name not in failures]
    for name in stale:
        print(f"{name} is Verified: its line in NOT_YET is wrong")
    print(
        f"{len(picked) - len(failures)} of {len(picked)} lowered, {len(verified)} of them Verified under the"
        " strict policy"
    )
    sys.exit(bool(unknown or stale))


main()
