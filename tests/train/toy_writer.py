"""A toy model that has learnt one verified answer by heart, as supervised fine-tuning leaves it: what
reinforcement learning begins with in tests; and its run files."""

import json
import pathlib
import shutil
import subprocess

REPOSITORY = pathlib.Path(__file__).parents[2]


def ran(root, environment, program, *arguments, code=0):
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, cwd=root, env=environment
    )
    assert done.returncode == code, (arguments, done.returncode, done.stderr)
    return done


def is_time(figure):
    """Whether a figure of metrics.jsonl says how long something took, or how much memory: no two runs
    agree."""
    return (
        figure.endswith("_s")
        or figure.startswith(("wall/", "busy/"))
        or figure in ("memory_gb", "rollouts_per_h")
    )


def learn_by_heart(root, environment, nereid, lm, room=1, bare=False):
    """Leaves training/sft, tokenizer.json and tasks.jsonl below root. What `nereid train data` said, and
    `length`: that many tokens hold prompt and answer. The model has `room` times as many positions. With
    `bare` a prompt is the task alone, by a folder of prompts below root: half as many tokens."""

    def run(program, *arguments):
        return ran(root, environment, program, *arguments)

    task = REPOSITORY / "tests/tasks/relu.py"
    run(nereid, "lower", task, "-o", "answer.py")
    code = (root / "answer.py").read_text()
    code = code[
        code.index("import torch") : code.index("\n# ---- Guard")
    ]  # the kernels alone: no plan in words, no guard
    (root / "answer.py").write_text(code)
    pair = {
        "task": task.read_text(),
        "plan": "One kernel for all elements.",
        "code": code,
        "verdict": {"verdict": "Verified"},
    }
    (root / "pairs.jsonl").write_text(json.dumps(pair) + "\n")
    (root / "tasks.jsonl").write_text(json.dumps({"code": pair["task"]}) + "\n")
    specials = [
        x for word in ("<|im_start|>", "<|im_end|>", "<think>", "</think>") for x in ("--special", word)
    ]
    prompts = REPOSITORY / "python/nereid/prompts"
    if bare:
        shutil.copytree(prompts, root / "prompts")
        prompts = root / "prompts"
        (prompts / "system.md").write_text("")
        (prompts / "task.md").write_text("{{source}}")
    run(
        nereid,
        "tokenize",
        "--train",
        "--vocab",
        1500,
        *specials,
        "-o",
        "tokenizer.json",
        *[prompts / "system.md", prompts / "task.md", task, "answer.py"] * 3,
    )
    vocab = max(json.loads((root / "tokenizer.json").read_text())["model"]["vocab"].values()) + 8
    report = json.loads(
        run(nereid, "train", "data", "pairs.jsonl", "-o", "data", "-t", "tokenizer.json", "--json").stdout
    )
    length = report["tokens"] + 16
    print(f"{report['tokens']} tokens, {report['answer_tokens']} of them the answer")

    (root / "sft.toml").write_text(f"""
[model]
vocab_size = {vocab}
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 2
num_attention_heads = 4
max_position_embeddings = {room * length}
[data]
train = ["data"]
sequence_length = {length}
global_batch_size = 1
[optimizer]
learning_rate = 0.005
[schedule]
steps = 140
warmup_steps = 5
[machine]
precision = "float32"
recompute = false
""")
    steps = [
        json.loads(line)
        for line in run(lm, "train-sft", "sft.toml", "--device", "cpu", "--json").stdout.splitlines()
    ]
    print(f"learnt by heart to a loss of {steps[-1]['loss']:.4f}")
    return report | {"length": length}


def rl_file(
    root, report, name, objective, steps, prompts=2, held_out=False, every=1, more="", judge_device="cpu"
):
    """Writes NAME.toml, a run that begins with what learn_by_heart left and said; `more` is lines of [rl].
    The name."""
    (root / f"{name}.toml").write_text(f"""
{"held_out_every = 2" if held_out else ""}
[model]
start_from = "training/sft/checkpoints/step-00000140/model"
[data]
sequence_length = {report["length"]}
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
{'held_out = ["tasks.jsonl"]' if held_out else ""}
prompts_per_step = {prompts}
samples = 8
max_tokens = {report["answer_tokens"] + 8}
temperature = 0.95
judge_device = "{judge_device}"
{more}
""")
    return name
