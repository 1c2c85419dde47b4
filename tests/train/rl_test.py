"""Reinforcement learning at toy size, with the real judge: a model that has learnt one verified answer by heart writes it, wrongly at
times; rewards, gradients and pass@1 come out; killed and resumed it is the same run."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import toy_writer

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}


def ran(program, *arguments, code=0):
    return toy_writer.ran(root, ENV, program, *arguments, code=code)


told = toy_writer.learn_by_heart(root, ENV, NEREID, LM)
length = told["length"]


def rl_file(name, objective, steps=2, more="", every=1):
    (root / f"{name}.toml").write_text(f"""
held_out_every = 2
[model]
start_from = "training/sft/checkpoints/step-00000140/model"
[data]
sequence_length = {length}
[optimizer]
learning_rate = 0.0003
[schedule]
kind = "constant"
steps = {steps}
[checkpoints]
every_steps = {every}
[machine]
precision = "float32"
[rl]
objective = "{objective}"
tokenizer = "tokenizer.json"
tasks = ["tasks.jsonl"]
held_out = ["tasks.jsonl"]
prompts_per_step = 2
samples = 8
most_tokens = {told['answer_tokens'] + 8}
temperature = 0.95
judge_device = "cpu"
{more}
""")
    return name


def metrics(name):
    return [json.loads(line) for line in (root / "training" / name / "metrics.jsonl").read_text().splitlines()]


for objective in ("grpo", "hrd", "drpo"):
    out = [json.loads(line) for line in ran(LM, "train-rl", rl_file(objective, objective) + ".toml", "--device", "cpu", "--json").stdout.splitlines()]
    assert [line["step"] for line in out] == [0, 1] and len(metrics(objective)) == 2
    for line in out:
        shares = {k: v for k, v in line.items() if k.startswith("verdict/")}
        assert abs(sum(shares.values()) - 1) < 1e-9, line
        assert abs(shares.get("verdict/Verified", 0) - line["reward"]) < 1e-9 and line["unjudged"] == 0, line
        assert line["entropy"] > 0 and line["length"] > 10, line
        mixed = line["groups_alike"] < 1
        assert (line["gradient_norm"] > 0) == mixed or objective == "drpo", line
    assert 0 < sum(line["reward"] for line in out) < 2, [line["reward"] for line in out]
    assert out[1]["pass_at_1/0"] in (0, 1)
    assert (root / f"training/{objective}/checkpoints/step-00000002/model/config.json").exists()
    print(objective, [(line["reward"], round(line["loss"], 4), {k: v for k, v in line.items() if k.startswith("verdict/")}) for line in out])

# Killed after a step and resumed: the same rewards, losses, gradients.
rl_file("killed", "grpo")
process = subprocess.Popen([LM, "train-rl", "killed.toml", "--device", "cpu", "--json"], cwd=root, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
process.stdout.readline()
process.send_signal(signal.SIGKILL)
process.communicate()
ran(LM, "train-rl", "killed.toml", "--device", "cpu")
for a, b in zip(metrics("killed"), metrics("grpo"), strict=True):
    for figure in b:
        if not figure.endswith("_s") and figure != "memory_gb":
            assert a[figure] == b[figure], (figure, a, b)

# Ctrl-C in the middle of a step: the steps before it are kept, though no checkpoint was due.
rl_file("interrupted", "grpo", every=100)
process = subprocess.Popen([LM, "train-rl", "interrupted.toml", "--device", "cpu", "--json"], cwd=root, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
process.stdout.readline()
process.send_signal(signal.SIGINT)
process.communicate()
assert process.returncode == 130, process.returncode
assert [p.name for p in (root / "training/interrupted/checkpoints").iterdir()] == ["step-00000001"]
ran(LM, "train-rl", "interrupted.toml", "--device", "cpu")
for a, b in zip(metrics("interrupted"), metrics("grpo"), strict=True):
    assert all(a[figure] == b[figure] for figure in ("loss", "reward", "entropy", "gradient_norm")), (a, b)

# What an ablation leaves out: the same answers, the same verdicts.
out = [json.loads(line) for line in ran(LM, "train-rl", rl_file("unruled", "hrd", steps=1, more="uniform_reward = true\nrule_reward = false") + ".toml",
                                        "--device", "cpu", "--json").stdout.splitlines()]
first = metrics("hrd")[0]
assert out[0]["reward"] >= first["reward"] and all(out[0][k] == first[k] for k in first if k.startswith(("verdict/", "rule/"))), (out, first)

# What is wrong with a run file or its tasks.
(root / "tasks.jsonl").write_text("{}\n")
rl_file("bad", "grpo")
assert "tasks.jsonl:1" in ran(LM, "train-rl", "bad.toml", "--device", "cpu", code=2).stderr
assert "rl has no key 'tau'" in ran(LM, "train-rl", rl_file("tau", "grpo", more="tau = 3") + ".toml", code=2).stderr
print("rewards come from the judge, and a resumed run is the same")
