"""Several ranks at toy size, on the CPU: the run of one rank up to rounding, the same again and again,
resumed by any number of ranks, and the error about a rank that is gone."""

import os
import pathlib
import signal
import subprocess
import sys

import torch
from safetensors.torch import load_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import toy_runs
from toy_runs import ENV, EXACT, command, curve, refused, root, run_file, start, whole

toy_runs.LM = os.path.abspath(sys.argv[1])
ONE = {"data": {"micro_batch_size": 1}, "schedule": {"steps": 20, "warmup_steps": 2}}


def near(a, b, tolerance):
    for one, other in zip(curve(a, "loss", "gradient_norm"), curve(b, "loss", "gradient_norm"), strict=True):
        for x, y in zip(one, other):
            assert abs(x - y) <= tolerance * max(1, abs(y)), (a, b, one, other)


for kind in ("adamw", "muon"):
    changes = {**ONE, "optimizer": {"kind": kind}}
    whole(f"{kind}_1", **changes)
    for ranks in (2, 4):
        whole(f"{kind}_{ranks}", "--ranks", str(ranks), **changes)
        near(f"{kind}_{ranks}", f"{kind}_1", 1e-3 if kind == "adamw" else 2e-2)  # Muon rounds to bfloat16
        parts = sorted((root / f"runs/{kind}_{ranks}/checkpoints/step-00000020").glob("optimizer-*"))
        assert len(parts) == ranks
        masters = torch.cat([load_file(part)["master"] for part in parts])
        alone = load_file(root / f"runs/{kind}_1/checkpoints/step-00000020/optimizer-0-of-1.safetensors")[
            "master"
        ]
        assert masters.shape == alone.shape
whole("again", "--ranks", "4", **ONE)
assert curve("again", *EXACT) == curve("adamw_4", *EXACT)
held_out = [
    (a, b)
    for (a,), (b,) in zip(curve("adamw_4", "held_out_loss"), curve("adamw_1", "held_out_loss"))
    if a is not None
]
assert held_out and all(abs(a - b) < 1e-3 for a, b in held_out), held_out
whole("bf16", "--ranks", "2", machine={"precision": "bfloat16"}, **ONE)

# Parameters sharded, too: the same numbers where each rank has one micro-batch a step, the same up to
# rounding elsewhere; checkpoints are the same files, whichever run continues from them.
UNTIED = {"model": {"tie_word_embeddings": False}}
SHARDED = {"machine": {"shard_parameters": True}}
for name, more in (("untied", {}), ("untied_sharded", SHARDED)):
    whole(name, "--ranks", "4", **ONE, **UNTIED, **more)
assert curve("untied_sharded", *EXACT) == curve("untied", *EXACT)
for file in ("model/model.safetensors", *(f"optimizer-{rank}-of-4.safetensors" for rank in range(4))):
    one, other = (
        load_file(root / "runs" / run / "checkpoints/step-00000020" / file)
        for run in ("untied_sharded", "untied")
    )
    assert one.keys() == other.keys() and all(torch.equal(one[tensor], other[tensor]) for tensor in one), file
for kind in ("adamw", "muon"):
    for ranks in (1, 2):
        whole(f"{kind}_sharded_{ranks}", "--ranks", str(ranks), **ONE, **SHARDED, optimizer={"kind": kind})
        near(f"{kind}_sharded_{ranks}", f"{kind}_1", 1e-3 if kind == "adamw" else 2e-2)
bf16 = {"precision": "bfloat16", "shard_parameters": True}
whole("bf16_sharded", "--ranks", "2", machine=bf16, **ONE)
near("bf16_sharded", "bf16", 2e-2)
refused(
    "sharded layers that are kept",
    start("kept", "--ranks", "2", machine={"shard_parameters": True, "recompute": False}),
    "machine.recompute: expected true",
    code=2,
)
run_file("sharded_lost", **ONE, **SHARDED)
process = subprocess.Popen(
    command("sharded_lost", "--ranks", "2", "--json"),
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=ENV,
)
for _ in range(9):
    process.stdout.readline()
process.send_signal(signal.SIGKILL)
process.communicate()
whole("sharded_lost", "--ranks", "4", **ONE, **SHARDED)
near("sharded_lost", "adamw_1", 1e-3)


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# A rank is killed: the command says which, and no process is left. Then other numbers of ranks go on.
run_file("lost", **ONE)
process = subprocess.Popen(
    command("lost", "--ranks", "4", "--json"),
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=ENV,
)
for _ in range(9):
    process.stdout.readline()
while not (root / "runs/lost/checkpoints/step-00000007").exists():  # it is written during the steps
    assert process.stdout.readline(), "the run is over, and has kept nothing of step 7"
ranks = children(process.pid)
assert len(ranks) == 4, ranks
os.kill(ranks[2], signal.SIGKILL)
error = process.communicate()[1]
assert process.returncode == 3 and "rank 2 was killed by signal 9" in error, (process.returncode, error)
for rank in ranks:
    assert not pathlib.Path(f"/proc/{rank}").exists(), rank
process = subprocess.Popen(
    command("lost", "--ranks", "2", "--json"),
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
    env=ENV,
)
for _ in range(5):
    process.stdout.readline()
process.send_signal(signal.SIGKILL)  # the launcher alone: its ranks go with it
process.communicate()
whole("lost", **ONE)
near("lost", "adamw_1", 1e-3)

# An interrupt of the launcher alone, as a scheduler's, or of all at once, as a terminal's: all stop after
# one step, which is kept.
for name, everybody in (("one", False), ("all", True)):
    run_file(name, **ONE | {"schedule": {"steps": 1_000_000, "warmup_steps": 2}})
    process = subprocess.Popen(
        command(name, "--ranks", "2", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENV,
    )
    process.stdout.readline()
    for pid in (children(process.pid) if everybody else []) + [process.pid]:
        os.kill(pid, signal.SIGTERM)
    error = process.communicate(timeout=1200)[1]
    assert process.returncode == 130 and "stopped after step" in error, (process.returncode, error)
    (kept,) = (root / f"runs/{name}/checkpoints").glob("step-*")
    assert int(kept.name[5:]) == len(curve(name, "loss")), kept

# An error that all have is reported once.
done = start("wrong", "--ranks", "2", data={"train": ["/nowhere"]})
refused("no such data", done, "/nowhere/tokens.json: No such file", code=2)
assert done.stderr.count("/nowhere") == 1, done.stderr
refused(
    "rows that cannot be shared",
    start("three", "--ranks", "3"),
    "three.toml: data.global_batch_size: expected a multiple of micro_batch_size (2) times 3 ranks, got 4",
    code=2,
)
assert not (root / "runs/three").exists(), "it is reported before anything is begun"
print("ranks share the work, and name a lost rank")
