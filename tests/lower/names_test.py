"""Every name in what `nereid lower` writes is defined: tests/tasks, sampled programs, and recurrences whose
steps are stacked.

python tests/lower/names_test.py NEREID [--count N] [--every N] [--seed S]
"""

import argparse
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import names

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from sample import sampled  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LOOP = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear({inputs} + {hidden}, {hidden})
        self.out = nn.Linear({hidden}, {outputs})

    def forward(self, x, h):
        outs = []
        for t in range({steps}):
            h = torch.tanh(self.step(torch.cat([x[t], h], 1)))
            outs.append({one})
        return {all}


def get_inputs():
    return [torch.randn({steps}, {batch}, {inputs}), torch.randn({batch}, {hidden})]


def get_init_inputs():
    return []
"""


def recurrences():
    """The number of steps is in turn one of the other sizes, none of which are then alike."""
    sizes = {"inputs": 5, "hidden": 6, "outputs": 7, "batch": 3}
    ends = ("torch.stack(outs, 0)", "torch.stack(outs, 1)", "torch.cat(outs, 1)", "torch.stack(outs).sum(0)")
    for like, one, end in itertools.product([*sizes, None, "both"], ("h", "self.out(h)"), ends):
        steps = 4 if like is None else sizes["inputs"] + sizes["hidden"] if like == "both" else sizes[like]
        yield LOOP.format(**sizes, steps=steps, one=one, all=end)


CHECKED = {  # what the check itself must find, and what it must not
    "def f():\n    return a\n": ["a"],
    "import a.b\ndef f(x, *y, z=1):\n    return a, x, y, z, len, [w for w in x], lambda v: v\n": [],
    "import triton\n@triton.jit\ndef k(x, B: tl.constexpr):\n    for i in range(x):\n        y = i\n"
    "    return y + i\n": [
        "i",
        "tl",
        "y",
    ],
    "import triton\n@triton.jit\ndef k(x):\n    y = 0\n    for i in range(x):\n        y += i\n        z = "
    "y\n"
    "        z += 1\n    return y\n": [],
    "import triton\n@triton.jit\ndef k(x):\n    if x:\n        y = 1\n        z = 1\n    else:\n        y = "
    "2\n"
    "    return y + z\n": ["z"],
    "import triton\n@triton.jit\ndef k(x):\n    w += x\n    v = v + 1\n    u[t] = 1\n": ["t", "u", "v", "w"],
    "class A:\n    b = 1\n    def f(self):\n        return b\n": ["b"],
    "class A:\n    b = 1\n    c = b\n    def f(self):\n        try:\n            return __class__\n"
    "        except E as e:\n            raise e\n": ["E"],
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="take one of N parts of tests/tasks, and of 4 of the recurrences (tests/sample.py)",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for text, wanted in CHECKED.items():
        found = sorted({name for _, name in names.undefined(text)})
        assert found == wanted, (text, found, wanted)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        files = sampled(sorted((HERE.parent / "tasks").glob("*.py")), options.every, lambda task: task.name)
        loops = dict(enumerate(recurrences()))
        for i in sampled(loops, min(options.every, 4)):
            text = loops[i]
            files.append(folder / f"recurrence_{i}.py")
            files[-1].write_text(text)
        for level in (1, 2, 5, 20):
            drawn = folder / f"level{level}"
            command = (
                f"{options.nereid} synth --operators {level} --count {options.count} --seed {options.seed}"
                " --max-elements 2^15 -o"
            )
            subprocess.run([*command.split(), drawn], check=True, capture_output=True)
            files += sorted(drawn.glob("L*.py"))
        written = folder / "written"
        done = subprocess.run(
            [options.nereid, "lower", *files, "-o", written, "--json"], capture_output=True, text=True
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        lowered = sorted(written.rglob("*.py"))
        declined = [line["file"] for line in lines if "not_lowered" in line]
        bad = 0
        for file in lowered:
            for line, name in names.undefined(file.read_text()):
                bad += 1
                print(f"{file.relative_to(written)}:{line}: {name} is not defined")
        print(
            f"{len(lowered)} of {len(files)} files lowered, {len(declined)} declined, {bad} undefined names"
        )
        assert len(lowered) + len(declined) == len(files), done.stderr[-2000:]
        assert len(lowered) > 0.8 * len(files)
        sys.exit(bad > 0)


main()
