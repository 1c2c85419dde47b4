"""bench/typed_tasks: the same seed gives the same tasks, all run, and what they are for occurs in them."""

import ast
import json
import pathlib
import subprocess
import sys
import tempfile

import preloaded
import torch

FOLDER = pathlib.Path(__file__).parents[1] / "bench" / "typed_tasks"
sys.path.insert(0, str(FOLDER))
import program  # noqa: E402, F401
from operators import TABLE  # noqa: E402

with tempfile.TemporaryDirectory() as name:

    def tasks(file, count, *options):
        out = pathlib.Path(name) / file
        done = subprocess.run(
            preloaded.command("torch", FOLDER / "__main__.py", count, out, *options),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), [json.loads(line) for line in out.read_text().splitlines()]

    # A seed whose first 260 tasks have every operator.
    report, made = tasks("one", 260, "--seed", "16", "--jobs", "2")
    assert report["tasks"] == len(made) == len({task["code"] for task in made}) == 260, report
    assert report["left_out"] < 30, report
    ids = [int(task["id"].split("-")[-1]) for task in made[:40]]
    again = [program.program((16 << 32) + i) for i in ids]
    assert [{"id": f"typed-16-{i}", **task} for i, task in zip(ids, again)] == made[:40]
    assert [program.program((6 << 32) + i) for i in ids] != again

    for task in made[:60]:
        scope = {"__name__": "task"}
        exec(task["code"], scope)
        result = scope["Model"](*scope["get_init_inputs"]())(*scope["get_inputs"]())
        results = list(program.flat(result))
        assert [str(each.dtype).removeprefix("torch.") for each in results] == task["dtypes"], task["code"]
        assert [list(each.shape) for each in results] == task["shapes"], task["code"]
        assert all(torch.isfinite(each.detach().double()).all() for each in results), task["code"]

    used = {name for task in made for name in task["operators"]}
    assert used == {row[0].__name__ for row in TABLE}, used ^ {row[0].__name__ for row in TABLE}
    types = {each for task in made for each in task["dtypes"]}
    assert types >= {"float16", "bfloat16", "float32", "float64", "int32", "int64", "bool"}, types
    returned = {type(node.value).__name__ for task in made for node in ast.walk(ast.parse(task["code"]))
                if isinstance(node, ast.Return) and node.value}  # fmt: skip
    assert returned >= {"Tuple", "List", "Dict", "Call"}, returned
    text = "\n".join(task["code"] for task in made)
    for word in (
        "namedtuple(",
        "(NamedTuple)",
        "register_buffer",
        "nn.Sequential",
        ".add_(",
        "self.half()",
        "keepdim=True",
    ):
        assert word in text, word
print("260 tasks of other types and structures")
