"""bench/small_model/reworded.py: other words, the same meaning; what means something else is left out."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["NEREID"] = os.path.abspath(sys.argv[1])
os.environ["NEREID_KEEP_WARM"] = "30"
ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "bench/small_model"))
import reworded  # noqa: E402

PLAIN = """import torch
import torch.nn as nn

class Model(nn.Module):

    def __init__(self):
        super().__init__()
        self.scale = 3.0
        self.fc = nn.Linear(8, 4)

    def forward(self, x, y):
        a = torch.softmax(x, 1)
        b = y * self.scale
        c = a - b
        return self.fc(c)

def get_inputs():
    return [torch.randn(2, 8), torch.randn(2, 8)]

def get_init_inputs():
    return []
"""

texts = reworded.versions(PLAIN, 1)
kept, left_out = reworded.same(texts)
assert set(kept) == {"plain", "renamed", "reordered", "commented", "respelled"} and not left_out, left_out
assert "softmax(dim=1)" in kept["respelled"] and "in_features=8" in kept["respelled"], kept["respelled"]
for name in ("scale", "fc", " a ", " x", " b "):
    assert name not in kept["renamed"].split("def forward")[1].split("def get_inputs")[0], kept["renamed"]
assert kept["reordered"].index("b = ") < kept["reordered"].index("a = "), kept["reordered"]
assert kept["commented"].count("#") > 2, kept["commented"]

# Each of these is another program.
for before, after in (
    ("a - b", "b - a"),
    ("3.0", "4.0"),
    ("softmax(x, 1)", "softmax(x, 0)"),
    ("softmax(x", "softmax(y"),
):
    other = PLAIN.replace(before, after)
    assert other != PLAIN
    kept, left_out = reworded.same({"plain": PLAIN, "renamed": other})
    assert set(kept) == {"plain"} and left_out == ["renamed: means something else"], (before, left_out)
assert reworded.same({"plain": PLAIN.replace("torch.softmax", "torch.nothing")}) == (
    {},
    ["plain: cannot be traced"],
)

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "tasks.jsonl").write_text(json.dumps({"code": PLAIN}) + "\n")

    def run(*arguments):
        program = [sys.executable, ROOT / "bench/small_model/reworded.py", *arguments]
        return subprocess.run(program, check=True, cwd=folder, capture_output=True, text=True).stdout

    report = json.loads(run("tasks.jsonl", "out"))
    assert report == json.loads((folder / "out/reworded.json").read_text()), report
    assert report == {"tasks": dict.fromkeys(texts, 1), "left_out": {}}, report
    rows = [
        {"task": f"{way}_{task}", "sample": "greedy", "verdict": verdict}
        for way, task, verdict in (
            ("plain", "a", "Verified"),
            ("plain", "b", "Mismatch"),
            ("renamed", "a", "Mismatch"),
        )
    ]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = run("out", "--results", "results.jsonl").splitlines()
    assert "renamed: 1 tasks; right in plain words 1, so 0; 1 lost, 0 won" in lines, lines
print("the same tasks in other words")
