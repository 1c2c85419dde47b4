"""bench/small_model/varied.py: varied tasks run, repeat by seed, and none is a held-out one."""

import ast
import json
import pathlib
import subprocess
import tempfile

import preloaded

TOOL = pathlib.Path(__file__).parents[1] / "bench" / "small_model" / "varied.py"
HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
TAIL = "\n\ndef get_inputs():\n    return [\n{}    ]\n\n\ndef get_init_inputs():\n    return []\n"
LINEAR = """    def __init__(self):
        super().__init__()
        self.{0} = nn.Linear(32, 24)

    def forward(self, x, y):
        h = self.{0}(x)
        h2 = h.reshape([2, 192])
        h3 = h2.sigmoid()
        h4 = h3 + y
        return h3, h4
"""
TASKS = [
    LINEAR.format(name) + TAIL.format("        torch.randn(2, 8, 32),\n        torch.randn(192),\n")
    for name in ("proj", "to_out")
] + [
    "    def forward(self, x):\n        h = x.abs()\n        h2 = h.sum(dim=-1)\n        return h2\n"
    + TAIL.format("        torch.randn(4, 40),\n"),
    "    def forward(self, x):\n        h = x.exp()\n        h2 = h * float('inf')\n        return h2\n"
    + TAIL.format("        torch.randn(4, 40),\n"),
]


def line(code, split):
    return json.dumps({"id": f"H-{abs(hash(code))}", "form": "subgraph", "split": split, "code": HEAD + code})


def made(folder, name, *options):
    out = folder / name
    done = subprocess.run(
        preloaded.command("torch", TOOL, folder / "train.jsonl", out, *options),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [json.loads(each) for each in out.read_text().splitlines()]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "train.jsonl").write_text("".join(line(code, "train") + "\n" for code in TASKS))
    report, tasks = made(folder, "one", "--count", "60", "--seed", "3", "--jobs", "2")
    assert report["tasks"] == len(tasks) == len({task["code"] for task in tasks}) == 60, report
    assert report["left_out"]["results that are not finite"] > 0, report
    assert made(folder, "two", "--count", "10", "--seed", "3")[1] == tasks[:10]
    for task in tasks:
        space = {}
        exec(task["code"], space)
        space["Model"](*space["get_init_inputs"]())(*space["get_inputs"]())
    text = "".join(task["code"] for task in tasks)
    assert "self.proj" in text and "self.to_out" in text
    assert sum("nn.Linear" not in task["code"] for task in tasks) > 10, "parts of a forward"
    widths = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    assert len([width for width in widths if type(width) is int and width > 4]) > 20, "other sizes"

    # What is held out under other names stays held out.
    some = next(task["code"] for task in tasks if "self.proj" in task["code"])
    held_out = some.replace("self.proj", "self.name").replace(HEAD, "")
    (folder / "held_out.jsonl").write_text(line(held_out, "held-out") + "\n")
    without = ("--without", str(folder / "held_out.jsonl"))
    report, again = made(folder, "three", "--count", "60", "--seed", "3", *without)
    assert report["left_out"]["held out"] > 0, report
    assert some not in [task["code"] for task in again]
print("60 varied tasks")
