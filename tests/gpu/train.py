"""Training on a GPU: the speed of a model of 100 million parameters (tokens a second, MFU), the same run bit
by bit after a kill, and several GPUs, and our kernels' losses against those of PyTorch's operators. With
--device cpu the same at toy size, without the speed.

    .venv/bin/python tests/gpu/train.py build/release/bin/nereid-lm
        [--ranks 2] [--device cpu] [--no-recompute] [--rows 16]
    ... --shape 1.7b --no-recompute --rows 4 --steps 9       Qwen3-1.7B's shape
    ... --ranks 4 --shape 8b --rows 2 --steps 9 [--shard]     Qwen3-8B's shape, with parameters sharded or
                                                              whole
    ... --speed --no-recompute --rows 16 --global-batch-size 64 --profile 20     what a step's time goes to,
                                                                                 kernel by kernel
"""

import argparse
import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
import toy_runs
from shards import write_set
from toy_runs import EXACT, command, curve, root, run_file, same_checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("lm")
parser.add_argument("--device", default="cuda")
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--rows", type=int, default=8, help="rows of 4,096 tokens in one forward")
parser.add_argument("--global-batch-size", type=int, help="on each GPU (default: --rows)")
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--profile", type=int, help="show the kernels of this step")
parser.add_argument("--no-recompute", action="store_true")
parser.add_argument("--shape", choices=("100m", "1.7b", "8b"), default="100m")
parser.add_argument("--shard", action="store_true", help="parameters, too")
parser.add_argument("--speed", action="store_true", help="nothing but the speed")
options = parser.parse_args()
toy_runs.LM = os.path.abspath(options.lm)
gpu = options.device != "cpu"
environment = dict(os.environ) if gpu else toy_runs.ENV


def run(name, *more):
    return subprocess.run(
        [options.device if x == "cpu" else x for x in command(name, "--json", *more)],
        capture_output=True,
        text=True,
        env=environment,
    )


def done(name, *more):
    ran = run(name, *more)
    assert ran.returncode == 0, (name, ran.stderr)
    return [json.loads(line) for line in ran.stdout.splitlines()]


precision = {"precision": "bfloat16" if gpu else "float32"}
# On a CPU the script alone is tested.
STEPS = toy_runs.BASE["schedule"]["steps"] if gpu else 24
toy_runs.BASE["schedule"]["steps"] = STEPS


def checks():
    for name in ("whole", "killed"):
        run_file(name, machine=precision)
    done("whole")
    process = subprocess.Popen(
        [options.device if x == "cpu" else x for x in command("killed", "--json")],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    for _ in range(25 if gpu else 10):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    done("killed")
    assert curve("killed", *EXACT) == curve("whole", *EXACT), "a run that was killed is another"
    same_checkpoint("killed", "whole", STEPS)
    print("killed and resumed: the same run bit by bit")

    # Our kernels against PyTorch's operators: losses differ by rounding.
    for name in ("kept", "plain"):
        run_file(name, machine={**precision, "recompute": False})
    done("kept")
    done("plain", "--plain")
    for name in ("whole", "kept"):
        for (a,), (b,) in zip(curve("plain", "loss"), curve(name, "loss")):
            assert abs(a - b) < (0.1 if gpu else 1e-3), (name, a, b)
    print("our kernels and PyTorch's operators, kept and computed again: the same losses, up to rounding")

    if options.ranks > 1:
        ranked = {
            "machine": precision,
            "data": {"micro_batch_size": 1, "global_batch_size": 4 * options.ranks},
        }
        for name, ranks, shard in (
            ("one", 1, False),
            ("several", options.ranks, False),
            ("sharded", options.ranks, True),
        ):
            run_file(name, **{**ranked, "machine": {**precision, "shard_parameters": shard}})
            done(name, "--ranks", str(ranks))
            for (a,), (b,) in zip(curve("one", "loss"), curve(name, "loss")):
                assert abs(a - b) < (0.1 if gpu else 1e-3), (name, a, b)
        print(
            f"{options.ranks} ranks, with whole parameters and sharded ones: the losses of one, up to"
            " rounding"
        )


if not options.speed:
    checks()

# 100 million parameters, 12 layers, or Qwen3-1.7B's or 8B's shape; documents of 200 to 3,000 tokens, all but
# their first tenth an answer.
vocab, length, count = (
    ({"100m": 32768, "1.7b": 151936, "8b": 151936}[options.shape], 4096, 1500) if gpu else (500, 128, 60)
)
draw = random.Random(0)
documents = []
for _ in range(count):
    tokens = draw.choices(range(vocab), k=draw.randrange(length // 20, length * 3 // 4))
    documents.append((tokens, [(len(tokens) // 10, len(tokens))]))
write_set(root / "large", [documents], vocab)
shape = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
}
if options.shape == "1.7b":
    shape = {
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": True,
    }
if options.shape == "8b":
    shape = {
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "tie_word_embeddings": False,
    }
run_file(
    "large",
    top={"held_out_every": 1000},
    model={"vocab_size": vocab, **(shape if gpu else {})},
    data={
        "train": [str(root / "large")],
        "held_out": None,
        "sequence_length": length,
        "global_batch_size": (options.global_batch_size or options.rows) * options.ranks,
        "micro_batch_size": options.rows,
        "window": 4096,
    },
    optimizer={"learning_rate": 3e-4},
    schedule={"steps": options.steps},
    checkpoints={"every_steps": 1000},
    machine={**precision, "recompute": not options.no_recompute, "shard_parameters": options.shard},
)
# Its last checkpoint would take longer than all of its steps.
more = ["--profile", str(options.profile)] if options.profile else []
process = subprocess.Popen(
    [
        options.device if x == "cpu" else x
        for x in command("large", "--json", "--ranks", str(options.ranks), *more)
    ],
    stdout=subprocess.PIPE,
    stderr=None if options.profile else subprocess.PIPE,
    text=True,
    env=environment,
    start_new_session=True,
)
lines = [line for line in (process.stdout.readline() for _ in range(options.steps)) if line]
if len(lines) == options.steps:
    os.killpg(process.pid, signal.SIGKILL)
assert len(lines) == options.steps, process.stderr.read() if process.stderr else "see above"
steps = [json.loads(line) for line in lines][options.steps // 3 :]
middle = {
    key: statistics.median(s[key] for s in steps)
    for key in ("tokens_per_s", "seconds", "memory_gb", "mfu")
    if key in steps[0]
}
print(
    f"{options.shape}, {options.ranks} ranks, {options.rows} rows of {length} at once, recompute"
    f" {not options.no_recompute}, sharded {options.shard}: {middle}"
)
