"""bench/rl_throughput at toy size on the CPU: recorded answers are written in place of the model's, judge and
trainer have them, and the figures hold together."""

import json
import pathlib
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(sys.argv[1]).resolve().parent
TASKS, SAMPLES = 6, 8

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    words = ["synth", "--operators", "1", "--count", str(TASKS), "--pairs", "--brief", "--seed", "7"]
    words += ["--max-elements", "2^12", "--max-work", "2^16", "--verify-every", "0", "-o", "pairs.jsonl"]
    subprocess.run([PROGRAMS / "nereid", *words], cwd=folder, check=True, capture_output=True)
    pairs = {}
    for line in (folder / "pairs.jsonl").read_text().splitlines():
        pair = json.loads(line)
        pairs.setdefault(pair["task"], pair)
    answers = folder / "answers"
    answers.mkdir()
    (answers / "tasks.jsonl").write_text("".join(json.dumps({"code": task}) + "\n" for task in pairs))
    texts = {}
    with (answers / "rollouts.jsonl").open("w") as out:
        for task, pair in enumerate(pairs.values()):
            for sample in range(SAMPLES):
                right = sample < SAMPLES // 2
                code = pair["code"] if right else f"# {sample}\nthis is no Python ("
                text = f"<think>\n{pair['plan']}\n</think>\n```python\n{code}```\n"
                texts[task, sample] = (text, right)
                rollout = {"step": 0, "class": 0, "task": task, "prompt": task, "sample": sample}
                rollout |= {
                    "verdict": "Verified",
                    "reward": 1.0,
                    "tokens": 1,
                    "plan_tokens": 3,
                    "answer": text,
                }
                out.write(json.dumps(rollout) + "\n")
    words = ["--models", "toy", "--device", "cpu", "--answers", answers, "--seconds", "240", "--steps", "1"]
    done = subprocess.run(
        [sys.executable, REPOSITORY / "bench/rl_throughput/run", PROGRAMS, *words, "--keep", folder / "kept"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["models"]
    assert found["fits"] and found["steps"] == 1 and found["rollouts"] == 2 * SAMPLES, found
    # Half of the answers are right, whatever random weights would have written.
    assert found["verdicts"]["Verified"] == 0.5, found
    assert abs(sum(found["wall"].values()) - 1) < 0.01 and 0 < found["judge_busy"] <= 1.5, found
    assert found["tokens_of_an_answer"] > 50 and found["rollouts_per_h"] > 0, found
    assert found["gpu"]["all"] is None and found["judged"] > 0 and found["unjudged"] == 0, found
    lines = [json.loads(line) for line in (folder / "kept/toy.jsonl").read_text().splitlines()]
    assert len(lines) == 2 and all(line["verdict/Verified"] == 0.5 for line in lines), lines

    # A table of memory: what a card has not is not tried.
    sys.path.insert(0, str(REPOSITORY / "bench/rl_throughput"))
    from shapes import QWEN3, gigabytes, parameters

    assert 0.55e9 < parameters(QWEN3["0.6b"]) < 0.65e9 and 8.1e9 < parameters(QWEN3["8b"]) < 8.3e9
    assert 110 < gigabytes(QWEN3["8b"], 2) < 120, gigabytes(QWEN3["8b"], 2)
print("recorded answers are written, judged and learnt from; figures hold together")
