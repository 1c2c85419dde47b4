"""`nereid train pairs`: verified answers to given tasks, in order, resumed where it was stopped."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

NEREID = os.path.abspath(sys.argv[1])
TASKS = pathlib.Path(__file__).parents[1] / "tasks"
RAISES = (
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        raise ValueError(x)\n"
)
INPUTS = "def get_inputs():\n    return [torch.ones(3)]\ndef get_init_inputs():\n    return []\n"

with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)

    def pairs(*arguments, code=0):
        done = subprocess.run(
            [NEREID, "train", "pairs", *arguments], capture_output=True, text=True, cwd=root
        )
        assert done.returncode == code, (arguments, done.returncode, done.stderr)
        return done

    lines = [
        {"id": "a", "package": "ours", "split": "train", "code": (TASKS / "add_relu.py").read_text()},
        {"id": "b", "code": RAISES + INPUTS},
        {"code": (TASKS / "abs_sqrt.py").read_text()},
    ]
    (root / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = json.loads(pairs("tasks.jsonl", "-o", "pairs.jsonl", "--json").stdout)
    made = [json.loads(line) for line in (root / "pairs.jsonl").read_text().splitlines()]
    assert report["tasks"] == 3 and report["with_pairs"] == 2 and report["not_lowered"] == 1, report
    assert report["pairs"] == len(made) and report["verdicts"] == {"Verified": len(made)}, report
    assert [pair["id"].rsplit("-v", 1)[0] for pair in made if pair["id"].endswith("-v0")] == ["a", "task-2"]
    for pair in made:
        source = lines[0]["code"] if pair["id"].startswith("a") else lines[2]["code"]
        assert pair["task"] == source and pair["verdict"]["verdict"] == "Verified", pair
        assert pair["plan"].startswith("given x [") and "class ModelNew" in pair["code"], pair["plan"]
    assert made[0]["package"] == "ours" and made[0]["split"] == "train", made[0].keys()

    # Without verdicts the answers are the same.
    report = json.loads(pairs("tasks.jsonl", "-o", "unjudged.jsonl", "--verify-every", "0", "--json").stdout)
    unjudged = [json.loads(line) for line in (root / "unjudged.jsonl").read_text().splitlines()]
    assert report["verdicts"] == {"not judged": len(made)} and report["not_lowered"] == 1, report
    assert unjudged == [{key: pair[key] for key in pair if key != "verdict"} for pair in made]

    # What a killed run has written after its progress is cut off and made again, to the same lines.
    whole = (root / "pairs.jsonl").read_bytes()
    progress = json.loads((root / "pairs.jsonl.progress").read_text())
    assert (
        pairs("tasks.jsonl", "-o", "pairs.jsonl", "--json") and (root / "pairs.jsonl").read_bytes() == whole
    )
    (root / "pairs.jsonl").write_bytes(whole + b"{half a line")
    pairs("tasks.jsonl", "-o", "pairs.jsonl")
    assert (root / "pairs.jsonl").read_bytes() == whole, progress

    done = pairs("tasks.jsonl", "-o", "pairs.jsonl", "--seed", "1", code=2)
    assert "pairs.jsonl" in done.stderr, done.stderr
    (root / "bad.jsonl").write_text(json.dumps(lines[0]) + '\n{"id": "c"}\n')
    done = pairs("bad.jsonl", "-o", "other.jsonl", code=2)
    assert "bad.jsonl:2" in done.stderr and "code" in done.stderr, done.stderr
print("verified pairs of given tasks, resumed")
