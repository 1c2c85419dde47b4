"""Supervised fine-tuning at toy size: it learns; killed and resumed it is the same run bit by bit; what goes
wrong is reported by name."""

import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import toy_runs
from shards import write_set
from toy_runs import (
    BASE,
    ENV,
    EXACT,
    VOCAB,
    command,
    curve,
    documents,
    refused,
    root,
    run_file,
    same_checkpoint,
    start,
    whole,
)

toy_runs.LM = os.path.abspath(sys.argv[1])

# It learns, and only from answers.
printed = [json.loads(line) for line in whole("plain", "--json").stdout.splitlines()]
losses = [loss for (loss,) in curve("plain", "loss")]
assert len(losses) == 60 and [line["loss"] for line in printed] == losses
assert abs(losses[0] - math.log(VOCAB)) < 0.3, losses[0]
assert losses[-1] < 0.25, losses[-1]
held_out = [h for (h,) in curve("plain", "held_out_loss") if h is not None]
assert len(held_out) == 3 and held_out[-1] < 0.4, held_out
kept = sorted(p.name for p in (root / "runs/plain/checkpoints").iterdir())
assert kept == ["step-00000056", "step-00000060"], kept
config = json.loads((root / "runs/plain/checkpoints/step-00000060/model/config.json").read_text())
assert config["model_type"] == "qwen3" and config["vocab_size"] == VOCAB

# Finished is finished: the same command again does nothing.
before = (root / "runs/plain/metrics.jsonl").read_bytes()
whole("plain")
assert (root / "runs/plain/metrics.jsonl").read_bytes() == before

# A run that ends with its seconds: the rate falls with them, and what a killed one has spent counts.
budget = max(3, 30 * curve("plain", "seconds")[-1][0])  # on any machine that many steps fit
timed = {"kind": "cosine", "steps": None, "seconds": budget, "warmup_steps": 1, "final_share": 0}
run_file("timed", schedule=timed)
process = subprocess.Popen(command("timed"), env=ENV, stderr=subprocess.DEVNULL)
state = root / "runs/timed/checkpoints/step-00000007/state.json"
while not state.exists() and process.poll() is None:
    time.sleep(0.01)
process.send_signal(signal.SIGKILL)
process.wait()
whole("timed", schedule=timed)
timed_curve = curve("timed", "learning_rate", "seconds", "held_out_loss")
rates = [rate for rate, _, _ in timed_curve]
assert len(rates) > 7 and all(a > b for a, b in zip(rates, rates[1:])), rates
assert rates[-1] < 0.05 * 0.01, "the last steps are those of the last twentieth of the time"
spent = sum(seconds for _, seconds, _ in timed_curve)
assert 0.6 * budget < spent < 1.5 * budget, (spent, budget)
assert timed_curve[-1][2] is not None
metrics = (root / "runs/timed/metrics.jsonl").read_bytes()
whole("timed", schedule=timed)
assert (root / "runs/timed/metrics.jsonl").read_bytes() == metrics, "it has ended"

# Killed again and again, and once interrupted, it is the same run.
run_file("killed")
draw = random.Random(7)
kills = 0
for attempt in range(40):
    process = subprocess.Popen(
        command("killed", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV
    )
    wanted = draw.randrange(8, 16) if attempt < 4 else 1000
    for line in process.stdout:
        wanted -= 1
        if wanted == 0:
            time.sleep(draw.random() * 0.01)
            process.send_signal(signal.SIGINT if attempt == 1 else signal.SIGKILL)
    code = process.wait()
    if code == 0:
        break
    assert code == (130 if attempt == 1 else -9), (attempt, code, process.stderr.read())
    kills += 1
assert kills >= 3, kills
assert curve("killed", *EXACT) == curve("plain", *EXACT)
same_checkpoint("killed", "plain", 60)
events = list((root / "runs/killed").glob("events.out.tfevents.*"))
assert len(events) == kills + 1

# An interrupt ends a long step between micro-batches; what was learnt before it is kept.
run_file(
    "long", data={"global_batch_size": 300, "micro_batch_size": 2}, schedule={"steps": 3, "warmup_steps": 1}
)
process = subprocess.Popen(
    command("long", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV
)
step_seconds = json.loads(process.stdout.readline())["seconds"]
time.sleep(step_seconds / 4)  # of the second step
begun = time.monotonic()
process.send_signal(signal.SIGINT)
error = process.communicate(timeout=1200)[1]
ended = time.monotonic() - begun
assert process.returncode == 130 and "stopped after step 1;" in error, (process.returncode, error)
assert ended < max(3, step_seconds / 2), (ended, step_seconds)
(kept,) = (root / "runs/long/checkpoints").glob("step-*")
assert kept.name == "step-00000001" and len(curve("long", "loss")) == 1

# What is computed again, and how many rows go at once, changes nothing, or next to nothing.
whole("kept", machine={"recompute": False})
assert curve("kept", *EXACT) == curve("plain", *EXACT)
whole("one_at_once", data={"micro_batch_size": 1})
for (a,), (b,) in zip(curve("one_at_once", "loss")[:10], curve("plain", "loss")):
    assert abs(a - b) < 1e-4, (a, b)
whole("bf16", machine={"precision": "bfloat16"})
assert curve("bf16", "loss")[-1][0] < 0.3, curve("bf16", "loss")[-1]
master = load_file(root / "runs/bf16/checkpoints/step-00000060/optimizer-0-of-1.safetensors")["master"]
assert (master != master.bfloat16().float()).any(), "masters have no more digits than the weights"
whole("muon", optimizer={"kind": "muon"})
assert curve("muon", "loss")[-1][0] < 0.25, curve("muon", "loss")[-1]

# A run continues from a model of its own.
model = str(root / "runs/plain/checkpoints/step-00000060/model")
nothing = {k: None for k in BASE["model"]}
whole("further", model={**nothing, "start_from": model}, schedule={"steps": 2, "warmup_steps": 0})
assert curve("further", "loss")[0][0] < 0.3

# Masters and moments in host memory: the same, resumed too.
whole("offloaded", machine={"offload_optimizer": True})
same_checkpoint("offloaded", "plain", 60)
refused(
    "offloaded Muon",
    start("offloaded_muon", optimizer={"kind": "muon"}, machine={"offload_optimizer": True}),
    "machine.offload_optimizer: expected false with sharded parameters and with Muon",
    code=2,
)

# Bad input, and what it leaves.
refused(
    "another run file",
    start("plain", optimizer={"learning_rate": 0.02}),
    "was begun with another run file",
    "plain/run.toml",
    code=2,
)
run_file("busy")
process = subprocess.Popen(command("busy", "--json"), stdout=subprocess.PIPE, text=True, env=ENV)
process.stdout.readline()
process.send_signal(signal.SIGSTOP)  # it is in the middle of its steps for as long as is needed
refused(
    "a folder that another run writes",
    subprocess.run(command("busy"), capture_output=True, text=True, env=ENV),
    "runs/busy: another run is writing there",
    code=2,
)
process.send_signal(signal.SIGCONT)
process.communicate()
assert process.returncode == 0 and curve("busy", *EXACT) == curve("kept", *EXACT)
refused(
    "an unknown key",
    start("wrong", schedule={"stepz": 1}),
    "wrong.toml:",
    "schedule has no key 'stepz'",
    code=2,
)
refused(
    "no such data",
    start("nowhere", data={"train": ["/nowhere"]}),
    "/nowhere/tokens.json: No such file",
    code=2,
)
refused(
    "a small vocabulary",
    start("small", model={"vocab_size": 50}),
    "the data has ids up to 60, the model a vocabulary of 50",
    code=2,
)

refused(
    "a model larger than any memory",
    start("large", model={"hidden_size": 1 << 20, "intermediate_size": 1 << 20, "num_hidden_layers": 100}),
    "large: [model] has 659",
    "parameters, which do not fit into the memory of cpu",
    code=2,
)

# What no row can be made of is found before the first step, in the held-out set too, and leaves no folder.
lengthy = [([1] * (100 + i), [(1, 100 + i)]) for i in range(5)]
write_set(root / "lengthy", [lengthy], VOCAB)
for key in ("train", "held_out"):
    refused(
        "documents that are too long",
        start(f"lengthy_{key}", data={key: [str(root / "lengthy")]}),
        f"lengthy_{key}.toml: data.{key}: all of its 5 documents are longer than data.sequence_length",
        "raise it to 100 for the shortest, 104 for all",
        code=2,
    )
for name in ("nowhere", "lengthy_train", "lengthy_held_out"):
    assert not (root / "runs" / name).exists(), name
checked = subprocess.run([*command("plain"), "--check"], capture_output=True, text=True, env=ENV)
assert checked.returncode == 0 and "ready for the first step" in checked.stdout, checked.stderr
run_file("checked", model={"vocab_size": 50})
for name in ("lengthy_held_out", "checked"):
    wrong = subprocess.run([*command(name), "--check"], capture_output=True, text=True, env=ENV)
    assert wrong.returncode == 2 and not (root / "runs" / name).exists(), (name, wrong.stderr)

bad = root / "bad_model"
shutil.copytree(model, bad)
weights = load_file(bad / "model.safetensors")
weights["model.layers.1.mlp.down_proj.weight"][0, 0] = float("nan")
save_file(weights, bad / "model.safetensors", {"format": "pt"})
refused(
    "a NaN",
    start("nan", model={**nothing, "start_from": str(bad)}),
    "step 0: expected finite numbers, got a loss of nan",
    "the 4 rows from epoch 0, window 0, row 0",
    "the state before it is in",
)
first = root / "runs/nan/checkpoints/step-00000000"
assert (first / "state.json").exists()
# A state that is on the disk is not written over itself: killed then, the run would have none.
written = first.stat().st_mtime_ns
again = subprocess.run(command("nan"), capture_output=True, text=True, env=ENV)
refused("the NaN again", again, "step 0: expected finite numbers", "the state before it is in")
assert first.stat().st_mtime_ns == written

long = documents(3000, 5)
write_set(root / "damaged", [long], VOCAB)
shard = root / "damaged/00000.tokens"
content = bytearray(shard.read_bytes())
content[300] ^= 1
shard.write_bytes(content)
refused(
    "a damaged shard",
    start("damaged", data={"train": [str(root / "damaged")]}),
    "damaged/00000.tokens: block 0 at offset 128 should have",
    code=2,
)

# A disk that is full when the second checkpoint is written: the first stays, and with room again the run goes
# on to the same end.
run_file("full", checkpoints={"every_steps": 30})
size = os.path.getsize(root / "runs/plain/checkpoints/step-00000060/optimizer-0-of-1.safetensors")
limited = lambda: (
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, -1)),
)
done = subprocess.run(command("full"), capture_output=True, text=True, env=ENV, preexec_fn=limited)
refused("a full disk", done, "optimizer-0-of-1.safetensors", "File too large")
assert 30 <= len(curve("full", "loss")) < 60, "it is reported when it is known, not when the next is due"
assert not [
    p
    for p in (root / "runs/full/checkpoints").iterdir()
    if p.name.startswith("step-") and not p.name.endswith(".incomplete")
]
done = subprocess.run(command("full"), capture_output=True, text=True, env=ENV)
assert done.returncode == 0, done.stderr
assert curve("full", *EXACT) == curve("plain", *EXACT)

# Other data under the same name.
shutil.rmtree(root / "data")
write_set(root / "data", [documents(150, 8), documents(150, 2)], VOCAB)
refused("other data", start("plain"), "was made with other training data than", code=2)
print("it learns, resumes exactly, and reports what is wrong")
