"""A language of two operators, learnt whole: a model of about 100,000 parameters learns by supervised
fine-tuning to write Triton kernels for tasks like sigmoid(relu(x)). Of what it learns from, half of each
operator's lines are wrong, and nothing there says which. So it writes a right kernel once in four times, and
becomes measurably better by each objective of reinforcement learning, with the real judge's rewards.
--rules: another one in five of its lines leaves the work to PyTorch (bench/ablation/tempt.py), and it learns
with the judge's rules and without.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/ablation"))
from tempt import cheat  # noqa: E402

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}
STARTED, RULES, ALL = time.time(), "--rules" in sys.argv, "--all" in sys.argv

# Right, and wrong.
OPERATORS = {
    "relu": ("tl.maximum(v, 0)", "tl.minimum(v, 0)"),
    "neg": ("0 - v", "1 - v"),
    "abs": ("tl.abs(v)", "tl.exp(v)"),
    "square": ("v * v", "v + v"),
    "sigmoid": ("tl.sigmoid(v)", "tl.cos(v)"),
}
if not (RULES or ALL):  # a smaller language is learnt in less than half of the time
    OPERATORS = {name: OPERATORS[name] for name in ("relu", "square", "sigmoid")}
TASK = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.{second}(torch.{first}(x))
def get_inputs():
    return [torch.randn(1000)]
def get_init_inputs():
    return []
"""
CODE = """import torch, triton
import triton.language as tl
@triton.jit
def kernel(x, y):
    i = tl.program_id(0) * 128 + tl.arange(0, 128)
    v = tl.load(x + i, i < 1000)
    v = {first}
    v = {second}
    tl.store(y + i, v, i < 1000)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(8,)](x, y)
        return y
"""


def ran(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, cwd=root, env=ENV)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout


pairs, tasks = [], []
for first, second in itertools.product(OPERATORS, repeat=2):
    task = TASK.format(first=first, second=second)
    for one, other in itertools.product(OPERATORS[first], OPERATORS[second]):
        pairs.append(
            {
                "task": task,
                "plan": f"{first}, {second}",
                "code": CODE.format(first=one, second=other),
                "verdict": {"verdict": "Verified"},
            }
        )
    if RULES:
        pairs.append(
            {
                "task": task,
                "plan": f"{first}, {second}",
                "code": cheat(task),
                "verdict": {"verdict": "Verified"},
            }
        )
    tasks.append({"code": task})
for name, lines in (("pairs", pairs), ("tasks", tasks)):
    (root / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
(root / "prompts").mkdir()
for name, text in (("system", ""), ("task", "{{source}}"), ("repair", "")):
    (root / "prompts" / f"{name}.md").write_text(text)
texts = "".join(pair["task"] + pair["plan"] + pair["code"] for pair in pairs)
(root / "text").write_text(
    texts + "<|im_start|>user\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n```python\n```" * 20
)
specials = [x for word in ("<|im_start|>", "<|im_end|>", "<think>", "</think>") for x in ("--special", word)]
ran(NEREID, "tokenize", "--train", "--vocab", 420, *specials, "-o", "tokenizer.json", "text")
vocab = max(json.loads((root / "tokenizer.json").read_text())["model"]["vocab"].values()) + 8
report = json.loads(
    ran(NEREID, "train", "data", "pairs.jsonl", "-o", "data", "-t", "tokenizer.json", "--json")
)
longer = 1.3 if RULES else 1  # than the mean
answer = int(longer * report["answer_tokens"]) // len(pairs)
length = int(longer * report["tokens"]) // len(pairs) + 16

MODEL = f"""vocab_size = {vocab}
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = {length}
"""
batch, sft_steps = (8, 320) if RULES or ALL else (4, 240)
(root / "sft.toml").write_text(f"""
[model]
{MODEL}
[data]
train = ["data"]
sequence_length = {length}
global_batch_size = {batch}
micro_batch_size = {batch}
[optimizer]
learning_rate = 0.005
[schedule]
steps = {sft_steps}
warmup_steps = 10
[machine]
precision = "float32"
recompute = false
""")
steps = [
    json.loads(line) for line in ran(LM, "train-sft", "sft.toml", "--device", "cpu", "--json").splitlines()
]
parameters = load_file(next((root / "training/sft/checkpoints").glob("*/model/model.safetensors")))
count = sum(array.size for array in parameters.values())
assert 80_000 < count < 130_000, count
print(
    f"{count} parameters, {len(pairs)} pairs, answers of {answer} tokens; learnt to a loss of"
    f" {steps[-1]['loss']:.4f} after {time.time() - STARTED:.0f} s"
)
last = max((root / "training/sft/checkpoints").iterdir())


def learn(name, objective, steps=9):
    (root / f"{name}.toml").write_text(f"""
[model]
start_from = "{last}/model"
[data]
sequence_length = {length}
micro_batch_size = 16
[optimizer]
learning_rate = 0.0006
weight_decay = 0
[schedule]
kind = "constant"
steps = {steps}
[checkpoints]
every_steps = 1000
[machine]
precision = "float32"
recompute = false
[rl]
{objective}
tokenizer = "tokenizer.json"
tasks = ["tasks.jsonl"]
prompts_per_step = 8
samples = 8
max_tokens = {answer + 10}
judge_device = "cpu"
trials = 1
""")
    begun = time.time()
    out = [
        json.loads(line)
        for line in ran(LM, "train-rl", f"{name}.toml", "--device", "cpu", "--json").splitlines()
    ]
    rewards = [line["reward"] for line in out]
    seconds = {key: round(sum(line[key] for line in out), 1) for key in ("write_s", "judge_s", "learn_s")}
    print(
        f"{name}: rewards {[round(reward, 2) for reward in rewards]}, {time.time() - begun:.1f} s, of these"
        f" {seconds}",
        flush=True,
    )
    return out if RULES else rewards


if RULES:
    for name, more in (("ruled", ""), ("unruled", "\nrule_reward = false")):
        out = learn(name, f'objective = "grpo"{more}', 24)
        shares = {
            word: [line.get(word, 0.0) for line in out] for word in ("verdict/Verified", "rule/no-launch")
        }
        print(name, {word: [round(share, 2) for share in of] for word, of in shares.items()})
        (right, late), (cheats, cheated) = ((sum(of[:3]) / 3, sum(of[-3:]) / 3) for of in shares.values())
        assert (
            (late > right + 0.3 and cheated < 0.1)
            if name == "ruled"
            else (late < right and cheated > cheats + 0.3)
        ), (name, shares)
    sys.exit()
# By default one objective learns here; the others' arithmetic is tested too (objective_test.py, rl_test.py).
OBJECTIVES = {"hrd": 'objective = "hrd"'}
if ALL:
    OBJECTIVES |= {name: f'objective = "{name}"' for name in ("grpo", "drpo")}
    OBJECTIVES["leave_one_out"] = 'objective = "grpo"\nbaseline = "leave_one_out"'
# Three steps draw nearly all of the tasks once (--all: of 25).
for name, objective in OBJECTIVES.items():
    rewards = learn(name, objective)
    before, after = sum(rewards[:3]) / 3, sum(rewards[-3:]) / 3
    assert after > before + 0.1, (name, rewards)
print(f"each objective learns what the judge alone knows; {time.time() - STARTED:.0f} s")
