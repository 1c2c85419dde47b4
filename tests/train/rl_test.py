"""Reinforcement learning at toy size, with the real judge: a model that has learnt one verified answer by
heart writes it, wrongly at times; rewards, gradients and pass@1 come out; killed and resumed it is the same
run."""

import json
import math
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import toy_writer
from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import processes  # noqa: E402

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
EVERYTHING = "--all" in sys.argv  # else without half of what is killed and resumed
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}


def ran(program, *arguments, code=0):
    return toy_writer.ran(root, ENV, program, *arguments, code=code)


data = toy_writer.learn_by_heart(root, ENV, NEREID, LM, bare=True)
length = data["length"]


def rl_file(name, objective, steps=2, more="", every=1, **others):
    return toy_writer.rl_file(
        root, data, name, objective, steps, held_out=True, every=every, more=more, **others
    )


def metrics(name):
    return [
        json.loads(line) for line in (root / "training" / name / "metrics.jsonl").read_text().splitlines()
    ]


for objective, steps in (("grpo", 3), ("hrd", 2), ("drpo", 2)):
    out = [
        json.loads(line)
        for line in ran(
            LM, "train-rl", rl_file(objective, objective, steps) + ".toml", "--device", "cpu", "--json"
        ).stdout.splitlines()
    ]
    assert [line["step"] for line in out] == list(range(steps)) and len(metrics(objective)) == steps
    for line in out:
        shares = {k: v for k, v in line.items() if k.startswith("verdict/")}
        assert abs(sum(shares.values()) - 1) < 1e-9, line
        assert abs(shares.get("verdict/Verified", 0) - line["reward"]) < 1e-9 and line["unjudged"] == 0, line
        assert line["entropy"] > 0 and line["length"] > 10, line
        parts = {k: v for k, v in line.items() if k.startswith("wall/")}
        assert len(parts) == 5 and abs(sum(parts.values()) - 1) < 1e-9, line
        assert abs(line["rollouts_per_h"] * line["step_s"] / 3600 - 16) < 1e-6, line
        mixed = line["groups_alike"] < 1
        assert (line["gradient_norm"] > 0) == mixed or objective == "drpo", line
    assert 0 < sum(line["reward"] for line in out) < steps, [line["reward"] for line in out]
    assert out[1]["pass_at_1/0"] in (0, 1)
    assert (root / f"training/{objective}/checkpoints/step-0000000{steps}/model/config.json").exists()
    print(
        objective,
        [
            (
                line["reward"],
                round(line["loss"], 4),
                {k: v for k, v in line.items() if k.startswith("verdict/")},
            )
            for line in out
        ],
    )


# What is wrong is found before the first step, and leaves no folder.
fine = rl_file("checked", "grpo") + ".toml"
assert json.loads(ran(NEREID, "train", "check", fine, "--device", "cpu", "--json").stdout)["ready"]
(root / "lost.toml").write_text((root / fine).read_text().replace('tasks = ["', 'tasks = ["lost-'))
wrong = ran(NEREID, "train", "check", "lost.toml", "--device", "cpu", code=2)
assert "No such file" in wrong.stderr and "lost-" in wrong.stderr, wrong.stderr
ran(LM, "train-rl", "lost.toml", "--device", "cpu", code=2)
assert not (root / "training/checked").exists() and not (root / "training/lost").exists()


def same(a, b):
    for one, other in zip(metrics(a), metrics(b), strict=True):
        for figure in other:
            if not toy_writer.is_time(figure) and figure not in ("judge_restarts", "judged", "saved"):
                assert one[figure] == other[figure], (a, b, figure, one, other)


def rollouts(name):
    return [
        json.loads(line) for line in (root / "training" / name / "rollouts.jsonl").read_text().splitlines()
    ]


def started(name, *more, **how):
    return subprocess.Popen(
        [LM, "train-rl", f"{name}.toml", "--device", "cpu", "--json", *more],
        cwd=root,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def judges_of(pid):
    """The processes right below a run's that are judges."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if (
                folder.name.isdigit()
                and int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid
                and b"verify" in (folder / "cmdline").read_bytes()
            ):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


# Every rollout is kept, with its verdict and advantage.
for objective in ("grpo", "hrd", "drpo"):
    kept = rollouts(objective)
    for line in metrics(objective):
        of_step = [r for r in kept if r["step"] == line["step"]]
        assert len(of_step) == 16 and abs(sum(r["reward"] for r in of_step) / 16 - line["reward"]) < 1e-9, (
            of_step
        )
        assert sorted({(r["prompt"], r["sample"]) for r in of_step}) == [
            (p, s) for p in range(2) for s in range(8)
        ]
        texts = {(r["prompt"], r["sample"]): r["answer"] for r in of_step if "answer" in r}
        # One task: equal programs in answers to it were judged once, also those of steps before.
        assert 0 <= line["judged"] <= line["programs"] <= len(set(texts.values())) and line["timed"] == 0, (
            line
        )
        assert line["saved"] == 1 - line["judged"] / 16, line
        for r in of_step:
            assert (r["verdict"] == "Verified") == (r["reward"] == 1) and ("advantage" in r) == (
                objective != "drpo"
            ), r
            assert ("plan_advantage" in r) == ("advantage" in r) and 0 <= r["plan_tokens"] <= r["tokens"], r
            assert r["verdict"] != "Verified" or 0 < r["plan_tokens"] < r["tokens"], r
            assert ("answer" in r) != ("same_as" in r) and (
                "answer" in r or (r["prompt"], r["same_as"]) in texts
            ), r
# What the engine and the trainer make of the same tokens differs by rounding alone at the first step; with
# staleness 1 the second step's were written under the weights before.
first, second, _ = metrics("grpo")
assert 0 < first["mismatch/most"] < 1e-3 < second["mismatch/most"], (first, second)

# Answers in fours go on from one plan, each by itself; hot, so that plans differ.
hot = root / (rl_file("branches", "hrd", more="branches = 4") + ".toml")
hot.write_text(hot.read_text().replace("temperature = 0.95", "temperature = 1.6"))
ran(LM, "train-rl", "branches.toml", "--device", "cpu")
kept = rollouts("branches")
texts = {(r["step"], r["prompt"], r["sample"]): r["answer"] for r in kept if "answer" in r}
fours = {}
for r in kept:
    text = r.get("answer") or texts[r["step"], r["prompt"], r["same_as"]]
    fours.setdefault((r["step"], r["prompt"], r["sample"] // 4), []).append((r["plan_tokens"], text))
plans, different = set(), 0
for (tokens, first), *others in fours.values():
    assert len(others) == 3, fours
    if tokens == 0:  # without a plan of the first the others start over
        continue
    plan = os.path.commonprefix([first, *(text for _, text in others)])
    assert plan.count("\n") >= 2 or len(plan) > tokens, (first, others)
    assert all(other == tokens for other, _ in others), (tokens, others)
    plans.add(plan)
    different += len({first, *(text for _, text in others)}) - 1
assert len(plans) > 1 and different > 0, fours

# A run that ends with its seconds: the rate falls with them, and the same command has nothing more to do.
(root / "timed.toml").write_text(
    (
        root
        / (
            rl_file("by_steps", "hrd", more="incorrect_penalty = 0.5\ncode_temperature = 0\nmin_p = 0.01")
            + ".toml"
        )
    )
    .read_text()
    .replace('kind = "constant"\nsteps = 2', 'kind = "cosine"\nseconds = 3\nfinal_share = 0')
)
ran(LM, "train-rl", "timed.toml", "--device", "cpu")
timed = metrics("timed")
spent = [sum(line["step_s"] for line in timed[:i]) for i in range(len(timed) + 1)]

# The last step is the one after which another would not be half done, or the one that the seconds are over
# in.
would_end = [spent[i] + 1.5 * (spent[i] - spent[max(i - 1, 0)]) >= 3 for i in range(len(timed))]
assert not any(would_end[:-1]) and (would_end[-1] or spent[-1] >= 3), spent
assert all(
    abs(line["learning_rate"] - 0.0003 * 0.5 * (1 + math.cos(math.pi * min(at / 3, 1)))) < 1e-9
    for line, at in zip(timed, spent)
), timed
ran(LM, "train-rl", "timed.toml", "--device", "cpu")
assert metrics("timed") == timed
assert all(r["plan_tokens"] > 0 for r in rollouts("timed") if r["verdict"] == "Verified")
# Code is written greedily after a plan: answers with the same plan are the same.
texts = {}
for r in rollouts("timed"):
    if r["step"] == 0 and "answer" in r:
        assert texts.setdefault(r["answer"].split("```")[0], r["answer"]) == r["answer"], r

# Times apart, with a program in the clock's place: it finds the very traces that the judge verified, and what
# it says is recorded.
CLOCK = """#!%s
import hashlib, json, os, pathlib, sys
if "--time-only" not in sys.argv:
    os.execv(%r, [%r] + sys.argv[1:])
folder = pathlib.Path(sys.argv[sys.argv.index("--traces") + 1])
pathlib.Path(%r).write_text(str(folder))
for line in sys.stdin:
    pair = json.loads(line)
    kept = folder / (pair["trace"] + ".trace")
    found = kept.exists() and hashlib.sha256(kept.read_bytes()).hexdigest() == pair["trace"]
    found = found and len(list(folder.iterdir())) > 1
    kept.unlink(missing_ok=True)
    print(json.dumps({"id": pair["id"], "verdict": "Verified" if found else "Unsafe",
                      "times": {"speedup": 1.5, "reference_ms": 2}, 
                      "phases": {"time_samples": 0.25, "gpu": 0.5}}), flush=True)
"""
(root / "bin").mkdir()
shutil.copy(LM, root / "bin/nereid-lm")
(root / "bin/nereid").write_text(CLOCK % (sys.executable, NEREID, NEREID, str(root / "traces_in")))
(root / "bin/nereid").chmod(0o755)
checkout = pathlib.Path(__file__).resolve().parents[2]
apart = {**ENV, "NEREID_PACKAGE": str(checkout / "python/nereid"), "NEREID_PYTHON": sys.executable}
toy_writer.ran(
    root,
    apart,
    root / "bin/nereid-lm",
    "train-rl",
    rl_file("apart", "hrd", more='times = "apart"', judge_device="cuda") + ".toml",
    "--device",
    "cpu",
)
for line in metrics("apart"):
    verified = [r for r in rollouts("apart") if r["step"] == line["step"] and r["verdict"] == "Verified"]
    assert verified and all(r["speedup"] == 1.5 for r in verified) and "verdict/Unsafe" not in line, line
    assert (
        line["clock/run_s"] == 0.25 * line["timed"]
        and line["clock/gpu_s"] == 0.5 * line["timed"]
        and line["clock/compile_s"] == 0
    ), line
assert metrics("apart")[0]["timed"] > 0 and not pathlib.Path((root / "traces_in").read_text()).exists()

# Killed in the middle of a step and resumed, without staleness and with it: the same rewards, losses,
# gradients.
rl_file("whole0", "grpo", steps=3, more="staleness = 0")
ran(LM, "train-rl", "whole0.toml", "--device", "cpu")
assert all(line["mismatch/most"] < 1e-3 for line in metrics("whole0"))
for staleness, whole in enumerate(("whole0", "grpo")):
    if staleness and not EVERYTHING:
        break  # the run that is interrupted below has it, too
    name = rl_file(f"killed{staleness}", "grpo", steps=3, more=f"staleness = {staleness}")
    process = started(name)
    process.stdout.readline()
    time.sleep(0.6 * staleness + 0.2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    ran(LM, "train-rl", f"{name}.toml", "--device", "cpu")
    same(name, whole)
    texts = [
        [
            (r["step"], r["prompt"], r["sample"], r["verdict"], r.get("advantage"), r.get("answer"))
            for r in rollouts(run)
        ]
        for run in (name, whole)
    ]
    assert texts[0] == texts[1]
# Two ranks (by the command that people use) share the prompts, and come to the same up to rounding; the same
# again where one was killed.
ran(NEREID, "train", "rl", rl_file("ranks", "hrd") + ".toml", "--device", "cpu", "--ranks", "2")
for a, b in zip(metrics("ranks"), metrics("hrd"), strict=True):
    for figure in b:
        if not toy_writer.is_time(figure) and figure not in (
            "programs",
            "judged",
            "saved",
            "mismatch/most",
        ):
            assert abs(a[figure] - b[figure]) <= 2e-3 * max(1, abs(b[figure])), (figure, a, b)
shared = (
    rollouts("ranks"),
    [json.loads(line) for line in (root / "training/ranks/rollouts-1.jsonl").read_text().splitlines()],
)
assert [{r["prompt"] for r in part} for part in shared] == [{0}, {1}]
assert sorted((r["step"], r["prompt"], r["sample"], r["verdict"]) for part in shared for r in part) == sorted(
    (r["step"], r["prompt"], r["sample"], r["verdict"]) for r in rollouts("hrd")
)
# The judge killed in the middle of a step: it is started again, what it had is judged again, and nothing of
# that is a reward.
process = started(rl_file("judge", "grpo", steps=3))
process.stdout.readline()
time.sleep(0.3)
os.kill(judges_of(process.pid)[0], signal.SIGKILL)
_, errors = process.communicate()
assert process.returncode == 0, errors
same("judge", "grpo")
assert metrics("judge")[-1]["judge_restarts"] == 1 and all(line["unjudged"] == 0 for line in metrics("judge"))
if EVERYTHING:
    # The judge's own workers killed while the first step is reported: their answers are judged again.
    process = started(rl_file("workers", "grpo", steps=3))
    process.stdout.readline()
    killed = set()
    while process.poll() is None and len(killed) < 3:
        for judge in judges_of(process.pid):
            for pid, words in processes.descendants(judge).items():
                if pid not in killed and ("nereid-replay" in words or "nereid._worker.zygote" in words):
                    try:
                        os.kill(pid, signal.SIGKILL)
                        killed.add(pid)
                    except ProcessLookupError:
                        pass
                    break
        time.sleep(0.3)
    _, errors = process.communicate()
    assert process.returncode == 0 and killed, (process.returncode, killed, errors)
    same("workers", "grpo")
    assert all(line["unjudged"] == 0 for line in metrics("workers"))
    # A disk that is full when a checkpoint is written: the error names the file; with room again it continues
    # from the last whole one to the same.
    largest = max(
        (root / "training/grpo/checkpoints/step-00000003").rglob("*.safetensors"), key=os.path.getsize
    )
    process = started(
        rl_file("full", "grpo", steps=3), preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    )
    process.stdout.readline()
    resource.prlimit(
        process.pid, resource.RLIMIT_FSIZE, (largest.stat().st_size // 2, resource.RLIM_INFINITY)
    )
    _, errors = process.communicate()
    assert process.returncode == 3 and "File too large" in errors and largest.name in errors, (
        process.returncode,
        largest,
        errors,
    )
    assert not (root / "training/full/checkpoints/step-00000003").exists()
    ran(LM, "train-rl", "full.toml", "--device", "cpu")
    same("full", "grpo")
# Ctrl-C in the middle of a step: the steps before it are kept, though no checkpoint was due, and what was
# written ahead.
process = started(rl_file("stopped", "grpo", steps=3, every=100))
process.stdout.readline()
time.sleep(0.3)
process.send_signal(signal.SIGINT)
_, errors = process.communicate()
assert process.returncode == 130 and "run the same command to resume" in errors, errors
(kept,) = (root / "training/stopped/checkpoints").iterdir()
assert kept.name in ("step-00000001", "step-00000002") and (kept / "kept-0-of-1.cbor").exists(), kept
ran(LM, "train-rl", "stopped.toml", "--device", "cpu")
same("stopped", "grpo")

if EVERYTHING:
    rl_file("lost", "hrd")
    process = started("lost", "--ranks", "2")
    process.stdout.readline()
    ranks = [
        int(child)
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]
    os.kill(ranks[1], signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 3 and "rank 1 was killed by signal 9" in errors, errors
    ran(LM, "train-rl", "lost.toml", "--device", "cpu", "--ranks", "2")
    same("lost", "ranks")

# Rows of supervised data in every update: the loss is what fine-tuning would find on the same rows, which go
# on where the run was killed.
pair = json.loads((root / "pairs.jsonl").read_text())
(root / "mixed.jsonl").write_text(
    "".join(
        json.dumps(pair | {"plan": plan}) + "\n"
        for plan in ("One.", "Elements.", "A kernel.", "For all.", "One kernel.")
    )
)
ran(NEREID, "train", "data", "mixed.jsonl", "-o", "mixed", "-t", "tokenizer.json")
SFT_MIX = 'staleness = 0\n[sft_mix]\ntrain = ["mixed"]\nrows = 2\nweight = 0.5'
ran(LM, "train-rl", rl_file("mixed", "grpo", more=SFT_MIX) + ".toml", "--device", "cpu")
losses = [line["sft_mix_loss"] for line in metrics("mixed")]
assert len(set(losses)) == 2 and all(loss > 0.01 for loss in losses), losses
(root / "sft_once.toml").write_text(
    '[model]\nstart_from = "training/sft/checkpoints/step-00000140/model"\n[data]\ntrain ='
    f' ["mixed"]\nsequence_length = {length}\nglobal_batch_size = 2\n[schedule]\nsteps ='
    ' 1\n[machine]\nprecision = "float32"\n'
)
ran(LM, "train-sft", "sft_once.toml", "--device", "cpu")
assert abs(losses[0] / metrics("sft_once")[0]["loss"] - 1) < 1e-5, (losses, metrics("sft_once"))
first, plain = metrics("mixed")[0], metrics("whole0")[0]
assert (
    first["loss"] == plain["loss"]
    and first["gradient_norm"] != plain["gradient_norm"]
    and "sft_mix_loss" not in plain
)
if EVERYTHING:
    process = started(rl_file("mixed_killed", "grpo", more=SFT_MIX))
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(metrics("mixed_killed")) == 1
    ran(LM, "train-rl", "mixed_killed.toml", "--device", "cpu")
    same("mixed_killed", "mixed")
    ran(
        LM,
        "train-rl",
        rl_file("mixed_ranks", "grpo", steps=1, more=SFT_MIX) + ".toml",
        "--device",
        "cpu",
        "--ranks",
        "2",
    )
    for a, b in zip(metrics("mixed_ranks"), metrics("mixed")):
        for figure in ("sft_mix_loss", "loss", "gradient_norm", "reward"):
            assert abs(a[figure] - b[figure]) <= 2e-3 * max(1, abs(b[figure])), (figure, a, b)
assert (
    "sft_mix.rows: expected a multiple of the 2 ranks, got 3"
    in ran(
        LM,
        "train-rl",
        rl_file("rows", "grpo", more=SFT_MIX.replace("rows = 2", "rows = 3")) + ".toml",
        "--device",
        "cpu",
        "--ranks",
        "2",
        code=2,
    ).stderr
)
(root / "pairs_of_others.jsonl").write_text(json.dumps(pair) + "\n")
shutil.rmtree(root / "mixed")
ran(NEREID, "train", "data", "pairs_of_others.jsonl", "-o", "mixed", "-t", "tokenizer.json")
shutil.rmtree(root / "training/mixed/checkpoints/step-00000002")
assert (
    "was made with another [sft_mix] than mixed holds now"
    in ran(LM, "train-rl", "mixed.toml", "--device", "cpu", code=2).stderr
)
(root / "tokenizer2.json").write_text((root / "tokenizer.json").read_text() + " ")
another = (root / rl_file("another", "grpo", more=SFT_MIX)).with_suffix(".toml")
another.write_text(
    another.read_text().replace('tokenizer = "tokenizer.json"', 'tokenizer = "tokenizer2.json"')
)
assert (
    "another.toml: sft_mix.train: mixed was made with another tokenizer"
    in ran(LM, "train-rl", "another.toml", "--device", "cpu", code=2).stderr
)

# What was right and fast is copied; without a clock all is as fast, and there is nothing to copy.
out = [
    json.loads(line)
    for line in ran(
        LM, "train-rl", rl_file("best", "best", steps=1) + ".toml", "--device", "cpu", "--json"
    ).stdout.splitlines()
]
assert all(line["loss"] == 0 and line["gradient_norm"] == 0 for line in out) and all(
    r["advantage"] == 0 for r in rollouts("best")
), out

# With a price of plans there is, where some are wrong: their plans alone are pushed away, and what is right
# is written more often.
out = [
    json.loads(line)
    for line in ran(
        LM,
        "train-rl",
        rl_file("planned", "best", steps=1, more="plan_incorrect_penalty = 0.5") + ".toml",
        "--device",
        "cpu",
        "--json",
    ).stdout.splitlines()
]
groups = {}
for r in rollouts("planned"):
    assert r["advantage"] == 0, r
    groups.setdefault((r["class"], r["task"], r["prompt"]), []).append(
        (r["verdict"] == "Verified", r["plan_advantage"])
    )
mixed = [group for group in groups.values() if len({right for right, _ in group}) == 2]
assert (
    mixed
    and out[0]["gradient_norm"] > 0
    and all((worth > 0) == right for group in mixed for right, worth in group)
), (out, groups)
assert all(worth == 0 for group in groups.values() if group not in mixed for _, worth in group), groups

# Where a task's forward is given and the prompts have a prefill.md, answers begin with it: it is part of each
# text, and nothing of it is learnt; stopped and resumed, too.
folder = root / "prefilled"
shutil.copytree(root / "prompts", folder / "prompts")
(folder / "prompts/prefill.md").write_text("<think>\n{{steps}}\n")
shutil.copy(root / "tokenizer.json", folder)
(folder / "tasks.jsonl").write_text(
    json.dumps(json.loads((root / "tasks.jsonl").read_text()) | {"forward": "One kernel for\n"}) + "\n"
)
for name in ("begun", "begun_stopped"):
    text = (root / rl_file(name, "grpo", steps=3 if EVERYTHING else 1)).with_suffix(".toml")
    text.write_text(
        text.read_text()
        .replace('tokenizer = "', 'tokenizer = "prefilled/')
        .replace('"tasks.jsonl"', '"prefilled/tasks.jsonl"')
    )
ran(LM, "train-rl", "begun.toml", "--device", "cpu")
begun = rollouts("begun")
assert begun and all(r["answer"].startswith("\nOne kernel for") for r in begun if "answer" in r), begun
verified, whole = (
    {r["tokens"] for r in kept if r["verdict"] == "Verified"} for kept in (begun, rollouts("grpo"))
)
assert verified and max(verified) < min(whole), (verified, whole)
assert metrics("begun")[0]["mismatch/most"] < 1e-3, metrics("begun")
if EVERYTHING:
    process = started("begun_stopped")
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    ran(LM, "train-rl", "begun_stopped.toml", "--device", "cpu")
    same("begun_stopped", "begun")
    assert [r.get("answer") for r in rollouts("begun_stopped")] == [r.get("answer") for r in begun]

# What an ablation leaves out: the same answers, the same verdicts.
out = [
    json.loads(line)
    for line in ran(
        LM,
        "train-rl",
        rl_file("unruled", "hrd", steps=1, more="uniform_reward = true\nrule_reward = false") + ".toml",
        "--device",
        "cpu",
        "--json",
    ).stdout.splitlines()
]
first = metrics("hrd")[0]
assert out[0]["reward"] >= first["reward"] and all(
    out[0][k] == first[k] for k in first if k.startswith(("verdict/", "rule/"))
), (out, first)

# A weight that is no number: reported with the step, and the state before it is kept.
shutil.copytree(root / "training/sft/checkpoints/step-00000140/model", root / "no_number")
weights = load_file(root / "no_number/model.safetensors")
weights["model.layers.1.mlp.down_proj.weight"][0, 0] = float("nan")
save_file(weights, root / "no_number/model.safetensors", {"format": "pt"})
text = (root / rl_file("nan", "grpo")).with_suffix(".toml")
text.write_text(text.read_text().replace("training/sft/checkpoints/step-00000140/model", "no_number"))
assert (
    "step 0: expected finite numbers, got a loss of"
    in ran(LM, "train-rl", "nan.toml", "--device", "cpu", code=3).stderr
)
assert (root / "training/nan/checkpoints/step-00000000/state.json").exists()

# What is wrong with a run file or its tasks.
(root / "tasks.jsonl").write_text("{}\n")
rl_file("bad", "grpo")
assert "tasks.jsonl:1" in ran(LM, "train-rl", "bad.toml", "--device", "cpu", code=2).stderr
assert (
    "rl has no key 'tau'"
    in ran(LM, "train-rl", rl_file("tau", "grpo", more="tau = 3") + ".toml", code=2).stderr
)
print("rewards come from the judge, and a resumed run is the same")
