"""Writers of training data in bench/small_model: tasks at other sizes, two tasks in one, tasks in other
words.

data_writers_test.py            the texts
data_writers_test.py NEREID     they are run by PyTorch, too, and their pairs are judged
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench/small_model"))
RUNS = len(sys.argv) > 1
if RUNS:
    os.environ["NEREID"] = os.path.abspath(sys.argv[1])
import joined  # noqa: E402
import renamed  # noqa: E402
import reshaped  # noqa: E402
from answers import LeftOut  # noqa: E402

FIRST = '''import torch
import torch.nn as nn


def scaled(x, by):
    return x * by


class Model(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(48, 12)
        self.register_buffer("offset", torch.ones(12))

    def forward(self, x):
        h = self.fc(x)
        return scaled(h, 2.0) + self.offset


def get_inputs():
    return [torch.randn(6, 48)]


def get_init_inputs():
    return []
'''
SECOND = """import math
import torch
from torch import nn


def scaled(x):
    return x / math.sqrt(12)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.LayerNorm(12)
        self.register_buffer("offset", torch.full((12,), 3.0))

    def forward(self, x, y):
        h = torch.softmax(scaled(x), -1) + self.offset
        x = self.fc(h)
        return x * y


def get_inputs():
    return [torch.randn(6, 12), torch.randn(6, 12)]


def get_init_inputs():
    return []
"""
PLAN = "given x [6, 48]\n#1 linear(x, fc_weight, fc_bias) [6, 12]\n#2 add(#1, offset) [6, 12]\nreturns #2\n"


def results(text, seed=0):
    """What the module of a text computes, by PyTorch."""
    import torch

    space = {}
    exec(compile(text, "task", "exec"), space)
    torch.manual_seed(seed)
    model = space["Model"](*space["get_init_inputs"]()).eval()
    return model, space["get_inputs"](), model(*space["get_inputs"]())


def check_reshaped():
    seen = set()
    for seed in range(30):
        source, text = reshaped.reshaped([("a", FIRST)], random.Random(seed))
        assert source == "a" and text not in (FIRST, ""), text
        width, out = map(int, re.search(r"nn\.Linear\((\d+), (\d+)\)", text).groups())
        rows, columns = map(int, re.search(r"torch\.randn\((\d+), (\d+)\)", text).groups())
        assert columns == width and f"torch.ones({out})" in text, text
        seen.add((rows, width, out))
        if RUNS:
            assert results(text)[2].shape == (rows, out), text
    assert len(seen) > 15, seen
    try:
        reshaped.reshaped([("a", FIRST.replace("6, 48", "4, 3"))], random.Random(1))
        raise AssertionError("a task without sizes was made")
    except LeftOut as error:
        assert str(error) == "no sizes", error


def check_joined():
    joined.plans.clear()
    joined.plans[FIRST] = PLAN
    ways = set()
    for seed in range(60):
        source, text = joined.joined([("a", FIRST), ("b", SECOND)], random.Random(seed))
        way = tuple(source.split())
        ways.add(way)
        compile(text, "task", "exec")
        assert text.count("class Model(") == text.count("super().__init__()") == 1, text
        if not RUNS:
            continue
        model, inputs, made = results(text)
        if way == ("a", "then", "b"):
            import torch

            first, second = results(FIRST)[0], results(SECOND)[0]
            first.load_state_dict({name: model.state_dict()[name] for name in first.state_dict()})
            names = {"fc2": "fc", "offset2": "offset"}
            state = {new + rest: model.state_dict()[old + rest] for old, new in names.items()
                     for rest in ("", ".weight", ".bias") if old + rest in model.state_dict()}  # fmt: skip
            second.load_state_dict(state)
            torch.manual_seed(1)
            inputs = [torch.randn_like(each) for each in inputs]
            middle = first(inputs[0])
            wanted = [middle, second(middle, inputs[1])]
            made = model(*inputs)
            sums = [
                wanted[0] + wanted[1],
                wanted[0] * wanted[1],
                wanted[0] - wanted[1],
                torch.maximum(*wanted),
            ]
            equal = (
                all(torch.allclose(a, b) for a, b in zip(made, wanted, strict=True))
                if isinstance(made, tuple)
                else any(torch.allclose(made, each) for each in [wanted[1], *sums])
            )
            assert equal, text
    assert {("a", "then", "b"), ("b", "apart", "a")} <= ways, ways
    # A constructor with arguments, or several results: no joint module.
    for before, after in (("__init__(self)", "__init__(self, n)"), ("return x * y", "return x, y")):
        try:
            joined.join(
                joined.parsed(FIRST),
                joined.parsed(SECOND.replace(before, after)),
                [None, None],
                random.Random(1),
            )
            raise AssertionError(after)
        except LeftOut:
            pass


PAIR = {
    "task": """class Model(nn.Module):
    def __init__(self):
        self.lower = nn.Linear(4, 4)
        self.conv = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4, eps=0.001)

    def forward(self, x):
        return self.norm(self.conv(self.lower(x) * 0.25) + 1.5)
""",
    "plan": "#1 linear(x, lower_weight, lower_bias) [4]\n#2 mul(#1, 0.25) [4]\n"
    "#3 linear(#2, conv_weight) [4]\n"
    "#4 add(#3, 1.5) [4]\n#5 native_layer_norm(#4, [4], norm_weight, 0.001) [4]",
    "code": """def conv_kernel(x_ptr, lower_weight_ptr, lower_bias_ptr):
    h = tl.load(lower_weight_ptr) * 0.25 + 1.5
class ModelNew(nn.Module):
    def forward(self, x):
        conv_kernel[(1,)](x, self.lower.weight, self.conv.weight, self.norm.weight, 0.001)
""",
}
WORDS = ["alder", "birch", "cedar", "maple", "walnut", "willow"]


def check_renamed_pairs():
    """The same names and numbers in task, plan and program: renamed back, a pair is the pair before."""
    seen, both = set(), 0
    for seed in range(40):
        other = renamed.renamed_pair(PAIR, WORDS, random.Random(seed))
        names = re.findall(r"self\.(\w+) = nn", other["task"])
        # conv is also a word of the program: it stays.
        assert names[1] == "conv" and "conv_kernel" in other["code"], other
        assert len(set(names)) == 3, names
        both += names[0] != "lower" and names[2] != "norm"  # a new name must not begin another one
        assert "eps=0.001" in other["task"] and ", 0.001)" in other["plan"] and ", 0.001)" in other["code"]
        back = dict(other)
        for old, new in sorted((("lower", names[0]), ("norm", names[2])), key=lambda pair: -len(pair[1])):
            back = {
                key: re.sub(rf"(?<![A-Za-z0-9_]){new}(?![A-Za-z0-9])", old, text)
                for key, text in back.items()
            }
        numbers = [re.search(r"\* (\S+)\) \+ (\S+)\)", back["task"])[i] for i in (1, 2)]
        for new, old in zip(numbers, ("0.25", "1.5")):
            assert float(new) <= float(old)
            back = {
                key: re.sub(rf"(?<![\w.]){re.escape(new)}(?![\w.])", old, text) for key, text in back.items()
            }
        assert back == PAIR, (back, other)
        seen.add(tuple(names + numbers))
    assert len(seen) > 30 and both > 25


def check_reworded():
    renamed.words[:] = WORDS
    texts = set()
    for seed in range(30):
        try:
            _, text = renamed.reworded_task([("a", FIRST)], random.Random(seed))
        except LeftOut as error:
            assert str(error) == "unchanged", error
            continue
        compile(text, "task", "exec")
        texts.add(text)
        if RUNS:
            import torch

            first, (x,), _ = results(FIRST)
            model = results(text)[0]
            model.load_state_dict(dict(zip(model.state_dict(), sorted_like(first, model))))
            assert torch.allclose(model(x), first(x)), text
    assert len(texts) > 15


def sorted_like(first, model):
    """Tensors of `first` for each name of `model`, by their sizes and order."""
    left = list(first.state_dict().values())
    for each in model.state_dict().values():
        at = next(i for i, other in enumerate(left) if other.shape == each.shape)
        yield left.pop(at)


def check_pairs(folder):
    """Each writer by its command: its answers are judged, and the tasks are those that were made."""
    (folder / "tasks.jsonl").write_text(
        "".join(
            json.dumps({"task": code, "plan": PLAN if code == FIRST else ""}) + "\n"
            for code in (FIRST, SECOND)
        )
    )
    for kind in ("reshaped", "joined", "renamed"):
        tool = [sys.executable, ROOT / f"bench/small_model/{kind}.py", "tasks.jsonl", f"{kind}.jsonl"]
        done = subprocess.run(
            [*tool, "--count", "3", "--verify-every", "1"], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        made = [json.loads(line) for line in open(folder / f"{kind}.jsonl")]
        assert said["tasks"] == 3 and said["pairs"] == len(made) >= 2, (said, done.stderr)
        assert said["verdicts"].get("Verified") == len(made) and said["pairs_per_core_minute"] > 0, said
        tasks = {json.loads(line)["code"] for line in open(folder / f"{kind}.jsonl.tasks.jsonl")}
        for pair in made:
            assert pair["task"] in tasks and pair["plan"].startswith("given "), pair["plan"]
        print(said)


check_renamed_pairs()
check_reshaped()
check_joined()
check_reworded()
if RUNS:
    with tempfile.TemporaryDirectory() as name:
        check_pairs(pathlib.Path(name))
print("tasks at other sizes, joined and in other words")
