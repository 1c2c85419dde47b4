"""Reinforcement learning at toy size on GPUs, with the real judge: each objective runs, what the engine and
the trainer make of the same tokens is alike, a run that was killed continues to its end; and with several
ranks, one a GPU: the figures of one, and a lost rank is named. With --device cpu the same on the CPU.

    .venv/bin/python tests/gpu/rl.py build/release/bin/nereid build/release/bin/nereid-lm
        [--ranks 2] [--device cpu]
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "train"))
import toy_writer

parser = argparse.ArgumentParser()
parser.add_argument("nereid")
parser.add_argument("lm")
parser.add_argument("--ranks", type=int, default=1)
parser.add_argument("--device", default="cuda")
options = parser.parse_args()
NEREID, LM = os.path.abspath(options.nereid), os.path.abspath(options.lm)
gpu = options.device != "cpu"
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "NEREID_KEEP_WARM": "60"} | (
    {} if gpu else {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
)
data = toy_writer.learn_by_heart(root, ENV, NEREID, LM)
STEPS = 3


def rl_file(name, objective, **more):
    toy_writer.rl_file(root, data, name, objective, STEPS, prompts=2 * options.ranks, **more)


def command(name, *more):
    return [LM, "train-rl", f"{name}.toml", "--device", options.device, "--json", *more]


def steps(name, *more):
    out = toy_writer.ran(root, ENV, *command(name, *more)).stdout
    return [json.loads(line) for line in out.splitlines()]


def metrics(name):
    lines = [
        json.loads(line) for line in (root / "training" / name / "metrics.jsonl").read_text().splitlines()
    ]
    assert [line["step"] for line in lines] == list(range(STEPS)), lines
    return lines


several = ("--ranks", str(options.ranks))
for objective in ("grpo", "hrd", "drpo"):
    rl_file(objective, objective)
    out = steps(objective, *several)
    assert len(out) == STEPS and all(line["unjudged"] == 0 and line["entropy"] > 0 for line in out), out
    assert 0 < sum(line["reward"] for line in out) < STEPS, [line["reward"] for line in out]
    # The same float32 weights wrote and score the first step's answers, by other kernels.
    assert 0 < out[0]["mismatch/most"] < 0.02 and out[0]["mismatch/mean"] < 1e-3, out[0]
    print(
        objective,
        [(round(line["reward"], 3), round(line["loss"], 4), f"{line['mismatch/most']:.1e}") for line in out],
    )

# A clock apart: what needs no GPU was done when it began, and it says where its seconds went.
if gpu:
    rl_file("apart", "hrd", more='times = "apart"', judge_device="cuda")
    out = steps("apart", *several)
    assert all(line["unjudged"] == 0 and line["judge_restarts"] == 0 for line in out), out
    first = out[0]
    assert (
        first["timed"] > 0
        and first["compiled_ahead_s"] > 0
        and 0 < first["clock/run_s"] < first["clock/gpu_s"]
    ), first
    for line in out:
        print(
            "apart",
            line["timed"],
            "timed in",
            round(line["time_s"], 2),
            "s:",
            {k: round(v, 3) for k, v in line.items() if k.startswith("clock/") or k == "compiled_ahead_s"},
        )

if options.ranks > 1:
    rl_file("alone", "grpo")
    first, shared = steps("alone")[0], metrics("grpo")[0]
    for figure in ("reward", "loss", "entropy", "length"):
        assert abs(first[figure] - shared[figure]) <= 2e-2 * max(1, abs(first[figure])), (
            figure,
            first,
            shared,
        )
    print(f"{options.ranks} ranks: the first step is one rank's, up to rounding")

rl_file("killed", "grpo")
process = subprocess.Popen(
    command("killed", *several), cwd=root, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
)
process.stdout.readline()
children = [
    int(child)
    for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
]
os.kill(children[-1] if options.ranks > 1 else process.pid, signal.SIGKILL)
_, errors = process.communicate(timeout=200)
if options.ranks > 1:
    assert process.returncode == 3 and f"rank {options.ranks - 1} was killed by signal 9" in errors, (
        process.returncode,
        errors,
    )
steps("killed", *several)
for one, other in zip(metrics("killed"), metrics("grpo")):
    assert gpu or (one["reward"], one["loss"]) == (other["reward"], other["loss"]), (one, other)
print(
    "killed in the middle of a step: it continues"
    + (", and says which rank is gone" if options.ranks > 1 else "")
)
