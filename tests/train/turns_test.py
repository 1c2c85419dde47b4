"""Reinforcement learning in several turns at toy size, with the real judge: wrong answers are asked about
again with the verdict's feedback, returns and TRLOO's advantages are what docs/rl.md says, and a resumed run
is the same run.

    tests/train/turns_test.py NEREID NEREID_LM
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import toy_writer

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
DISCOUNT, TURNS, SAMPLES = 0.5, 2, 8
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}


def ran(program, *arguments, code=0):
    return toy_writer.ran(root, ENV, program, *arguments, code=code)


data = toy_writer.learn_by_heart(root, ENV, NEREID, LM, room=2)
long = {**data, "length": 2 * data["length"]}


def lines(name, file):
    return [json.loads(line) for line in (root / "training" / name / file).read_text().splitlines()]


def trained(name, objective="grpo", steps=2, more="", code=0, **others):
    toy_writer.rl_file(root, long, name, objective, steps, prompts=1, more=more, **others)
    return ran(LM, "train-rl", f"{name}.toml", "--device", "cpu", "--json", code=code)


turns = f"turns = {TURNS}\nturn_discount = {DISCOUNT}\n"
trained("turns", held_out=True, more=turns)
for line in lines("turns", "metrics.jsonl"):
    kept = [r for r in lines("turns", "rollouts.jsonl") if r["step"] == line["step"]]
    conversations = {}
    for r in kept:
        conversations.setdefault(r["sample"], []).append(r)
    assert sorted(conversations) == list(range(SAMPLES))
    for answers in conversations.values():
        assert [r.get("turn", 0) for r in answers] == list(range(len(answers)))
        for now, then in zip(answers, answers[1:]):  # it continues after what is wrong, and ended by itself
            assert now["verdict"] != "Verified" and not now.get("cut_off"), now
        last = answers[-1]
        assert last["verdict"] == "Verified" or last.get("cut_off") or len(answers) == TURNS, last
    returns = {}
    for sample, answers in conversations.items():
        later = 0
        for r in reversed(answers):
            later = r["reward"] + DISCOUNT * later
            returns[sample, r.get("turn", 0)] = later
    for turn in range(TURNS):
        same = [r for r in kept if r.get("turn", 0) == turn]
        n = len(same)
        mean = sum(returns[r["sample"], turn] for r in same) / max(n, 1)
        for r in same:
            want = n / (n - 1) * (returns[r["sample"], turn] - mean) if n > 1 else 0
            assert abs(r["advantage"] - want) < 1e-9, (r["sample"], turn, r["advantage"], want)
        if n:
            right = sum(r["verdict"] == "Verified" for r in same)
            assert (
                line[f"turn/{turn + 1}/answers"] == n
                and abs(line[f"turn/{turn + 1}/Verified"] - right / n) < 1e-9
            )
    solved = sum(answers[-1]["verdict"] == "Verified" for answers in conversations.values())
    assert abs(line["solved"] - solved / SAMPLES) < 1e-9, line
    print({key: line[key] for key in line if key.startswith(("turn/", "solved", "pass_"))})
first, second = (
    [r for r in lines("turns", "rollouts.jsonl") if r.get("turn", 0) == turn] for turn in range(2)
)
assert second, "no answer was wrong and ended by itself: no second turn was tried"
assert "pass_after_turns/0" in lines("turns", "metrics.jsonl")[1]

# Killed after a step and resumed, it is the same run.
toy_writer.rl_file(root, long, "again", "grpo", 2, prompts=1, held_out=True, more=turns)
begun = subprocess.Popen(
    [LM, "train-rl", "again.toml", "--device", "cpu", "--json"], cwd=root, env=ENV, stdout=subprocess.PIPE
)
assert begun.stdout.readline()
begun.kill(), begun.wait()
trained("again", held_out=True, more=turns)
for one, other in zip(lines("turns", "rollouts.jsonl"), lines("again", "rollouts.jsonl"), strict=True):
    assert one == other, (one, other)

# What cannot be is said before the first step.
wrong = trained("best", "best", more=turns, code=2)
assert "rl.turns" in wrong.stderr and "grpo or hrd" in wrong.stderr, wrong.stderr
(root / "prompts").mkdir()
for name in ("system", "task", "repair"):
    text = (toy_writer.REPOSITORY / f"python/nereid/prompts/{name}.md").read_text()
    (root / f"prompts/{name}.md").write_text("" if name == "repair" else text)
wrong = trained("mute", more=turns, code=2)
assert "repair.md is empty" in wrong.stderr, wrong.stderr
assert not (root / "training/best").exists() and not (root / "training/mute/metrics.jsonl").exists()
