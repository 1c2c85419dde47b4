"""Pairs of which some leave the work to PyTorch: what a policy is tempted with, so that it is seen what rules
keep it from.

    tempt.py LINES.jsonl... -o FOLDER [--one-in 8] [--part 1]      FOLDER/LINES.jsonl, the same lines; of each
                                                                   file its first part

In one of so many the code is the task's own, under the name that an answer has, and the plan says so: right
always, refused by a rule, and no faster than what it was to replace. No such line is among those that a
checkpoint in this repository was trained on.
"""

import argparse
import ast
import json
import pathlib
import re
import sys

PLAN = "By PyTorch: no kernel."


def cheat(task):
    """The task's code as an answer, without what makes its inputs."""
    lines = task.splitlines(keepends=True)
    for node in reversed(ast.parse(task).body):
        if isinstance(node, ast.FunctionDef) and node.name in ("get_inputs", "get_init_inputs"):
            del lines[node.lineno - 1 : node.end_lineno]
    return re.sub(r"\bModel\b", "ModelNew", "".join(lines)).rstrip("\n") + "\n"


def tempted(pair):
    # What the forward does stands first in a plan, up to what it returns; then kernels.
    steps = re.match(r"(?:.*\n)*?returns.*\n", pair["plan"])
    return {
        **pair,
        "plan": (steps.group() if steps else "") + PLAN + "\n",
        "code": cheat(pair["task"]),
        "kernels": [],
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lines", nargs="+", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("--one-in", type=int, default=8)
    parser.add_argument("--part", type=float, default=1, help="of each file, by its bytes")
    asked = parser.parse_args()
    if not 0 < asked.part <= 1:
        parser.error(f"--part: expected above 0 and at most 1, got {asked.part:g}")
    if asked.one_in < 1:
        parser.error(f"--one-in: expected at least 1, got {asked.one_in}")
    asked.output.mkdir(parents=True, exist_ok=True)
    for path in asked.lines:
        if path.parent.resolve() == asked.output.resolve():
            parser.error(f"-o: expected another folder than that of {path}")
        with path.open() as source, (asked.output / path.name).open("w") as out:
            room = asked.part * path.stat().st_size
            for number, line in enumerate(source, 1):
                if room <= 0:
                    break
                room -= len(line)
                if number % asked.one_in == 0:
                    try:
                        line = json.dumps(tempted(json.loads(line))) + "\n"
                    except (ValueError, KeyError, SyntaxError) as error:
                        sys.exit(f"{path}:{number}: expected a pair of `nereid synth --pairs`, got {error!r}")
                out.write(line)


if __name__ == "__main__":
    main()
