"""bench/ablation with the real `nereid` and a toy model, in slices: trained, evaluated, searched with, packed
and reported.

tests/ablation_toy_test.py NEREID NEREID_LM
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "train"))
import toy_writer  # noqa: E402

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
ABLATION = HERE.parent / "bench" / "ablation"
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "NEREID": NEREID}
# The source and no more: the toy has learnt no answer that begins with a traced forward.
no_prefills = shutil.ignore_patterns("prefill*")
shutil.copytree(HERE.parent / "models/small/prompts", root / "prompts", ignore=no_prefills)
report = toy_writer.learn_by_heart(root, ENV, NEREID, LM)
# What ends its answers: reinforcement learning finds that by itself.
end = next(
    token["id"]
    for token in json.loads((root / "tokenizer.json").read_text())["added_tokens"]
    if token["content"] == "<|im_end|>"
)
(root / "training/sft/checkpoints/step-00000140/model/generation_config.json").write_text(
    json.dumps({"eos_token_id": end})
)
# The task that the model has learnt, asked as it was in training.
(root / "tasks").mkdir()
(root / "tasks" / "level1.jsonl").write_text((root / "tasks.jsonl").read_text())
(root / "base.toml").write_text(f"""
[model]
start_from = "training/sft/checkpoints/step-00000140/model"
[data]
sequence_length = {report["length"]}
[optimizer]
learning_rate = 0.0001
[schedule]
kind = "constant"
steps = 1000
[checkpoints]
every_steps = 100
keep = 1
[machine]
precision = "float32"
[rl]
objective = "grpo"
tokenizer = "tokenizer.json"
tasks = ["tasks.jsonl"]
prompts_per_step = 1
samples = 4
max_tokens = {report["answer_tokens"] + 8}
temperature = 0.9
judge_device = "cpu"
""")
(root / "arms.toml").write_text("""base = "base.toml"
assets = "."
seeds = [1, 2]
[compute]
rollouts = 16
[evaluations.alone]
tasks = "tasks"
levels = [1]
count = 1
samples = 2
options = ["--max-tokens", "400"]
[evaluations.search]
program = "search"
tasks = "tasks"
levels = [1]
count = 1
samples = 2
options = ["--trials", "1", "--repairs", "0"]
[evaluations.compiler]
model = false
tasks = "tasks"
levels = [1]
count = 1
[[arms]]
name = "sft"
train = "none"
seeds = [1]
evaluations = ["alone", "search", "compiler"]
[[arms]]
name = "unruled"
differences.rl = { objective = "hrd", rule_reward = false, uniform_reward = true }
[[comparisons]]
question = "Does it help?"
pairs = [["unruled", "sft"], ["sft/search", "sft"], ["sft/compiler", "sft/alone"]]
""")


def tool(name, *arguments, codes=(0,)):
    done = subprocess.run(
        [sys.executable, ABLATION / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=root,
        env=ENV,
    )
    assert done.returncode in codes, (arguments, done.returncode, done.stdout, done.stderr)
    return done


tool("ablation.py", "tasks", "arms.toml")
slices = 1
while (
    tool(
        "ablation.py",
        "run",
        "arms.toml",
        "-o",
        "out",
        "--device",
        "cpu",
        "--slice",
        12 * 1.3**slices,
        codes=(0, 75),
    ).returncode
    == 75
):
    slices += 1
    assert slices < 15
assert slices > 1
for seed in (1, 2):
    unit = root / f"out/unruled/seed-{seed}"
    steps = [json.loads(line) for line in (unit / "run/metrics.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [0, 1, 2, 3], steps
    assert json.loads((unit / "trained.json").read_text())["rollouts"] == 16


def verdicts(way):
    return {
        row["sample"]: row["verdict"]
        for row in map(json.loads, (root / f"out/{way}/results.jsonl").read_text().splitlines())
    }


assert verdicts("sft/seed-1/eval-compiler") == {"compiler": "Verified"}
alone = verdicts("sft/seed-1/eval-alone")
assert alone["greedy"] == "Verified" and set(alone) == {"greedy", "drawn0", "drawn1"}, alone
assert len(verdicts("unruled/seed-2/eval-alone")) == 3
searched = json.loads((root / "out/sft/seed-1/eval-search/summary.json").read_text())["results"]
assert [(r["id"], r["verdict"], r["samples"]) for r in searched] == [("L1_0000", "Verified", 2)], searched
tool("ablation.py", "pack", "out", "-o", "home")
tool("ablation.py", "unpack", "home", "-o", "again")
tool("report.py", "arms.toml", "again", "-o", "report")
text = (root / "report/results.md").read_text()
for part in (
    "## Does it help?",
    "| sft/alone |",
    "| sft/search |",
    "| unruled/alone |",
    "| unruled | 2 of 2 | 4 |",
    "unruled/alone - sft/alone",
    "In training `unruled` was paid for",
    "Nothing was timed there",
):
    assert part in text, (part, text)
assert (root / "report/reward.svg").exists() and "Not finished" not in text
# The real arms: `nereid` reads each run file, and misses the data that it names.
sys.path.insert(0, str(ABLATION))
from arms import read_table  # noqa: E402

for unit in (arm.units[0] for arm in read_table(ABLATION / "arms.toml").arms):
    if unit.program != "none":
        (root / f"{unit.arm}.toml").write_text(unit.run_file())
        done = subprocess.run(
            [LM, f"train-{unit.program}", f"{unit.arm}.toml", "--device", "cpu"],
            capture_output=True,
            text=True,
            cwd=root,
            env=ENV,
        )
        missing = "data/small-rl/train1.jsonl: No such file" if unit.program == "rl" else "/train/tokens.json"
        assert done.returncode == 2 and missing in done.stderr, (unit.arm, done.returncode, done.stderr)
print(text)
print(f"{slices} slices")
