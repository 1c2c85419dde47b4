"""bench/ablation with the real `nereid` and a toy model, in slices: trained, served, evaluated, packed and told.

    tests/ablation_toy_test.py NEREID NEREID_LM
"""
import json
import os
import pathlib
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
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
told = toy_writer.learn_by_heart(root, ENV, NEREID, LM)
(root / "tasks").mkdir()
# The name that the model has learnt to be asked with.
(root / "tasks" / "model.py").write_text((HERE / "tasks" / "relu.py").read_text())
(root / "base.toml").write_text(f"""
[model]
start_from = "training/sft/checkpoints/step-00000140/model"
[data]
sequence_length = {told["length"]}
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
most_tokens = {told["answer_tokens"] + 8}
temperature = 0.9
judge_device = "cpu"
""")
(root / "arms.toml").write_text("""base = "base.toml"
seeds = [1, 2]
[compute]
rollouts = 16
[evaluations.alone]
tasks = "tasks"
options = ["--proposer", "http", "--once", "--samples", "2", "--trials", "1"]
serve = ["--max-tokens", "400"]
[evaluations.compiler]
model = false
tasks = "tasks"
options = ["--proposer", "compiler", "--once", "--trials", "1"]
[[arms]]
name = "sft"
train = "none"
seeds = [1]
evaluations = ["alone", "compiler"]
[[arms]]
name = "unruled"
differences.rl = { objective = "hrd", rule_reward = false, uniform_reward = true }
[[comparisons]]
question = "Does it help?"
pairs = [["unruled", "sft"], ["sft/compiler", "sft/alone"]]
""")


def tool(name, *arguments, codes=(0,)):
    done = subprocess.run([sys.executable, ABLATION / name, *map(str, arguments)], capture_output=True, text=True, cwd=root, env=ENV)
    assert done.returncode in codes, (arguments, done.returncode, done.stdout, done.stderr)
    return done


slices = 1
while tool("ablation.py", "run", "arms.toml", "-o", "out", "--nereid", NEREID, "--device", "cpu", "--slice", 12, codes=(0, 75)).returncode == 75:
    slices += 1
    assert slices < 60
assert slices > 1
for seed in (1, 2):
    unit = root / f"out/unruled/seed-{seed}"
    steps = [json.loads(line) for line in (unit / "run/metrics.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == [0, 1, 2, 3], steps
    assert json.loads((unit / "trained.json").read_text())["rollouts"] == 16
result = {way: json.loads((root / f"out/{way}/summary.json").read_text())["results"] for way in ("sft/seed-1/eval-alone", "sft/seed-1/eval-compiler")}
assert all(len(results) == 1 and results[0]["id"] == "model" for results in result.values()), result
assert result["sft/seed-1/eval-compiler"][0]["verdict"] == "Verified", result
assert result["sft/seed-1/eval-alone"][0]["samples"] == 2, result
tool("ablation.py", "pack", "out", "-o", "home")
tool("ablation.py", "unpack", "home", "-o", "again")
tool("report.py", "arms.toml", "again", "-o", "report")
text = (root / "report/results.md").read_text()
for part in ("| sft/alone |", "| sft/compiler |", "| unruled/alone |", "| unruled | 2 of 2 | 16 |", "unruled/alone - sft/alone"):
    assert part in text, (part, text)
assert (root / "report/reward.svg").exists() and "Not finished" not in text
# The real arms: `nereid` reads each run file, and misses the tasks that it names.
sys.path.insert(0, str(ABLATION))
from arms import read_table  # noqa: E402

for arm in read_table(ABLATION / "arms.toml").arms:
    if arm.units[0].program == "rl":
        (root / f"{arm.name}.toml").write_text(arm.units[0].run_file())
        done = subprocess.run([LM, "train-rl", f"{arm.name}.toml", "--device", "cpu"], capture_output=True, text=True, cwd=root, env=ENV)
        assert done.returncode == 2 and "tasks/train1.jsonl: No such file" in done.stderr, (arm.name, done.stderr)
print(text)
print(f"{slices} slices")
