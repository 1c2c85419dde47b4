"""bench/small_model/given.py: plans begin with given shapes, options are added, renamed pairs stay
consistent."""

import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench" / "small_model"))
from given import renamed, with_given  # noqa: E402

PLAN = """#1 convolution(x, conv_weight, conv_bias, [2, 1], [1, 0], [1, 2], [0, 0], 1) [2, 16, 16, 28]
#2 convolution(#1, up_weight, [2, 2], [1, 1], [1, 1], [1, 1], 1) [2, 8, 32, 56]
#3 convolution(#1, square_weight, [1, 1], [1, 1], [1, 1], [0, 0], 1) [2, 16, 16, 28]
#4 unsqueeze(y, 1) [2, 1, 12, 16, 29]
#5 sum(#4, [3]) [2, 1, 12, 29]
#6 mean(#5, [2, 3]) [2, 1, 1, 1]
#7 max(#6, 1) [2, 1, 1], [2, 1, 1]
#8 slice(#2, 3, 1, 5) [2, 8, 32, 4] strides 8 * 32 * 56, 32 * 56, 56, 1 from 1
#9 amax(#8, [3]) [2, 8, 32, 1]
returns #9, #7.2
Simply fused:
#1 conv
conv_kernel: x [2, 3, 32, 32], conv_weight [16, 3, 3, 3], conv_bias [16] -> h [2, 16, 16, 28]
over [2, 16, 16, 28]. warps=4
up_kernel: h [2, 16, 16, 28], up_weight [16, 8, 3, 3], square_weight [16, 16, 3, 3] -> h2 [2, 8, 32, 56]
rest_kernel: h2 [2, 8, 32, 56], y [2, 1, 12, 16, 29] -> h9 [2, 8, 32, 1]"""

made = with_given(PLAN)
lines = made.split("\n")
assert lines[0] == (
    "given x [2, 3, 32, 32], conv_weight [16, 3, 3, 3], conv_bias [16], up_weight [16, 8, 3, 3], "
    "square_weight [16, 16, 3, 3], y [2, 12, 16, 29]"
), lines[0]
options = {int(m[1]): m[2] for m in re.finditer(r"#(\d+) .*, (keepdim|transposed)\) \[", made)}
assert options == {2: "transposed", 6: "keepdim", 9: "keepdim"}, options
assert re.sub(r", (keepdim|transposed)\) \[", ") [", "\n".join(lines[1:])) == PLAN

# What has no steps, or other ones, stays as it is.
for plan in ("I write one kernel.\nIt adds.", "", "#1 add(x, y) [3]\nand then\nreturns #1"):
    assert with_given(plan) == plan, plan

PAIR = {
    "task": """class Model(nn.Module):
    def __init__(self):
        self.lower = nn.Linear(4, 4)
        self.conv = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4, eps=0.001)

    def forward(self, x):
        return self.norm(self.conv(self.lower(x) * 0.25) + 1.5)
""",
    "plan": "#1 linear(x, lower_weight, lower_bias) [4]\n#2 mul(#1, 0.25) [4]\n#3 linear(#2, conv_weight) "
    "[4]\n"
    "#4 add(#3, 1.5) [4]\n#5 native_layer_norm(#4, [4], norm_weight, 0.001) [4]",
    "code": """def conv_kernel(x_ptr, lower_weight_ptr, lower_bias_ptr):
    h = tl.load(lower_weight_ptr) * 0.25 + 1.5
class ModelNew(nn.Module):
    def forward(self, x):
        conv_kernel[(1,)](x, self.lower.weight, self.conv.weight, self.norm.weight, 0.001)
""",
}
WORDS = ["alder", "birch", "cedar", "maple", "walnut", "willow"]
seen, both = set(), 0
for seed in range(40):
    other = renamed(PAIR, WORDS, random.Random(seed))
    names = re.findall(r"self\.(\w+) = nn", other["task"])
    # conv is also a word of the program: it stays.
    assert names[1] == "conv" and "conv_kernel" in other["code"], other
    assert len(set(names)) == 3, names
    both += names[0] != "lower" and names[2] != "norm"  # a new name must not begin another one
    assert "eps=0.001" in other["task"] and ", 0.001)" in other["plan"] and ", 0.001)" in other["code"]
    back = {key: text for key, text in other.items()}
    for old, new in sorted((("lower", names[0]), ("norm", names[2])), key=lambda pair: -len(pair[1])):
        back = {
            key: re.sub(rf"(?<![A-Za-z0-9_]){new}(?![A-Za-z0-9])", old, text) for key, text in back.items()
        }
    numbers = [re.search(r"\* (\S+)\) \+ (\S+)\)", back["task"])[i] for i in (1, 2)]
    for new, old in zip(numbers, ("0.25", "1.5")):
        assert float(new) <= float(old)
        back = {key: re.sub(rf"(?<![\w.]){re.escape(new)}(?![\w.])", old, text) for key, text in back.items()}
    assert back == PAIR, (back, other)
    seen.add(tuple(names + numbers))
assert len(seen) > 30 and both > 25

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    vocabulary = {"Ġ" + word: i for i, word in enumerate(WORDS)} | {"Ġclass": 10, "ab": 11, "Ġ12": 12}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    (folder / "pairs.jsonl").write_text(
        "".join(json.dumps(pair) + "\n" for pair in [PAIR | {"plan": PLAN}, PAIR, {"messages": []}])
    )
    tool = pathlib.Path(__file__).parents[1] / "bench" / "small_model" / "given.py"
    options = ["-o", folder / "out", "--renamed", "1", "--words", folder / "tokenizer.json"]
    done = subprocess.run(
        [sys.executable, tool, folder / "pairs.jsonl", *options], capture_output=True, text=True
    )
    assert json.loads(done.stdout) == {"lines": 3, "changed": 1, "renamed": 2, "left_out": 1}, done
    written = [json.loads(line) for line in open(folder / "out/pairs.jsonl")]
    assert written[0]["plan"] == made and written[1]["task"] != PAIR["task"], written
    done = subprocess.run([sys.executable, tool, folder / "pairs.jsonl", *options[:4]], capture_output=True)
    assert done.returncode == 2 and b"--words" in done.stderr, done
print("plans begin with given shapes; renamed pairs are consistent")
