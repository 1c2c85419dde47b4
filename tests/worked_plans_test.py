"""bench/small_model/worked.py: the arithmetic it writes is right, and the plan is otherwise the same."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "bench" / "small_model"))
from worked import worked  # noqa: E402

PLAN = """#1 convolution(x, conv_weight, conv_bias, [2, 1], [1, 0], [1, 2], [0, 0], 1) [2, 16, 16, 28]
#2 convolution(#1, up_weight, [2, 2], [1, 1], [1, 1], [1, 1], 1) [2, 8, 32, 56]
#3 max_pool2d_with_indices(#2, [3, 3], [2, 2], [1, 1]) [2, 8, 16, 28], [2, 8, 16, 28]
#4 constant_pad_nd(#3, [2, 0, 0, 0], 0) [2, 8, 16, 30]
#5 slice(#4, 3, 1, 9223372036854775807) [2, 8, 16, 29] strides 8 * 16 * 30, 16 * 30, 30, 1 from 1
#6 cat([#5, y], 1) [2, 2 * 10, 16, 29]
#7 view(#6, [2, -1]) [2, 9280]
#8 view(#7, [2, 4, -1]) [2, 4, 2320]
#9 repeat(z, [3, 1]) [3 * 5, 7]
#10 cat([#8, unknown], 1) [2, 5, 2320]
#11 max(#8, 1) [2, 2320], [2, 2320]
returns #9, #10, #11.2
Simply fused:
#1 conv
conv_kernel: x [2, 3, 32, 32], conv_weight [16, 3, 3, 3], conv_bias [16] -> h [2, 16, 16, 28]
over [2, 16, 16, 28]. warps=4
up_kernel: h [2, 16, 16, 28], up_weight [16, 8, 3, 3] -> h2 [2, 8, 32, 56]
rest_kernel: h2 [2, 8, 32, 56], y [2, 12, 16, 29], z [5, 7] -> h9 [15, 7]
again_kernel: x [2, 3, 32 * 32], y [2, 12, 16, 29] -> h10 [2, 3, 1024]"""

WORK = {
    1: "32 + 2 - 2 = 32; (32 - 1) // 2 + 1 = 16, 32 - 4 = 28",
    2: "(16 - 1) * 2 = 30; 30 + 2 = 32, (28 - 1) * 2 = 54; 54 + 2 = 56",
    3: "32 + 2 - 2 = 32; (32 - 1) // 2 + 1 = 16, 56 + 2 - 2 = 56; (56 - 1) // 2 + 1 = 28",
    4: "2 + 28 = 30",
    5: "30 - 1 = 29",
    6: "8 + 12 = 20",
    7: "20 * 16 * 29 = 9280",
    8: "9280 = 4 * 2320",
    9: "5 * 3 = 15",
}

made = worked(PLAN)
lines = made.split("\n")
assert lines[0] == (
    "given x [2, 3, 32, 32], conv_weight [16, 3, 3, 3], conv_bias [16], up_weight [16, 8, 3, 3], "
    "y [2, 12, 16, 29], z [5, 7]"
), lines[0]
for line in lines[1:]:
    step = re.match(r"#(\d+) \w+\(.*?\) (.*) -> \[", line)
    if step:
        assert WORK.pop(int(step[1])) == step[2], line
        for equation in re.split("[,;] ", step[2]):
            assert eval(equation.replace("=", "==")), equation
assert not WORK, WORK
assert "\n".join(re.sub(r"\) [^\[]* -> \[", ") [", line) for line in lines[1:]) == PLAN

# What has no steps, or other ones, stays as it is.
for plan in ("I write one kernel.\nIt adds.", "", "#1 add(x, y) [3]\nand then\nreturns #1"):
    assert worked(plan) == plan, plan
assert "->" not in worked("#1 cat([x, y], 1) [2, 7]\nreturns #1\nk: x [2, 3] -> h [2, 7]").split("\n")[1]

with tempfile.TemporaryDirectory() as name:
    path = pathlib.Path(name) / "pairs.jsonl"
    path.write_text(
        "".join(json.dumps(pair) + "\n" for pair in [{"plan": PLAN, "code": "c"}, {"messages": []}])
    )
    tool = pathlib.Path(__file__).parents[1] / "bench" / "small_model" / "worked.py"
    done = subprocess.run([sys.executable, tool, path, "-o", f"{name}/out"], capture_output=True, text=True)
    assert json.loads(done.stdout) == {"lines": 2, "changed": 1, "left_out": 1}, done
    assert [json.loads(line) for line in open(f"{name}/out/pairs.jsonl")] == [{"plan": made, "code": "c"}]
print("plans with their work")
