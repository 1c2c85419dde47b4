"""Runs of a toy model on toy data, for the tests of training."""

import json
import os
import pathlib
import random
import subprocess
import tempfile

import torch
from safetensors.torch import load_file
from shards import write_set

LM = "nereid-lm"
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
VOCAB = 61


def documents(count, seed):
    """An answer follows from its first token, which is the prompt's last: next = 3 * token + 1."""
    draw, result = random.Random(seed), []
    for _ in range(count):
        prompt = [draw.randrange(VOCAB) for _ in range(draw.randrange(1, 6))]
        tokens = prompt[:]
        for _ in range(draw.randrange(2, 24)):
            tokens.append((3 * tokens[-1] + 1) % VOCAB)
        result.append((tokens, [(len(prompt), len(tokens))]))
    return result


write_set(root / "data", [documents(150, 1), documents(150, 2)], VOCAB)
write_set(root / "held_out", [documents(40, 3)], VOCAB)

BASE = {
    "top": {"seed": 3, "held_out_every": 20},
    "model": {
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
    "data": {
        "train": [str(root / "data")],
        "held_out": [str(root / "held_out")],
        "sequence_length": 64,
        "global_batch_size": 4,
        "micro_batch_size": 2,
        "window": 64,
    },
    "optimizer": {"kind": "adamw", "learning_rate": 0.01},
    "schedule": {"kind": "cosine", "steps": 60, "warmup_steps": 5},
    "checkpoints": {"every_steps": 7, "keep": 2},
    "machine": {"precision": "float32", "recompute": True},
}


def run_file(name, **changes):
    text = ""
    for table, keys in BASE.items():
        keys = {**keys, **changes.get(table, {})}
        text += "" if table == "top" else f"[{table}]\n"
        text += "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items() if v is not None)
    (root / f"{name}.toml").write_text(text)
    return root / f"{name}.toml"


def command(name, *more):
    return [
        LM,
        "train-sft",
        str(root / f"{name}.toml"),
        "-o",
        str(root / "runs" / name),
        "--device",
        "cpu",
        *more,
    ]


def start(name, *more, **changes):
    run_file(name, **changes)
    return subprocess.run(command(name, *more), capture_output=True, text=True, env=ENV)


# One thread: this shares its cores with other tests, and threads that wait for each other are slow there.
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}


def curve(name, *figures):
    lines = [json.loads(line) for line in (root / "runs" / name / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(len(lines)))
    return [[line.get(f) for f in figures] for line in lines]


def whole(name, *more, **changes):
    done = start(name, *more, **changes)
    assert done.returncode == 0, (name, done.stderr)
    return done


def refused(what, done, *parts, code=3):
    assert done.returncode == code, (what, done.returncode, done.stderr)
    for part in parts:
        assert part in done.stderr, (what, part, done.stderr)


def same_checkpoint(a, b, step):
    for name in ("model/model.safetensors", "optimizer-0-of-1.safetensors"):
        one, other = (
            load_file(root / "runs" / run / "checkpoints" / f"step-{step:08}" / name) for run in (a, b)
        )
        assert one.keys() == other.keys()
        for tensor in one:
            assert torch.equal(one[tensor], other[tensor]), (a, b, name, tensor)


EXACT = ("loss", "gradient_norm", "learning_rate", "tokens", "held_out_loss")
