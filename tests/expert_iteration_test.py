"""bench/small_model/expert_iteration.py on a CPU with a toy model: three rounds, their curve, resumed where
they were stopped.

    python tests/expert_iteration_test.py NEREID NEREID_LM
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests/train"))
import toy_writer  # noqa: E402

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
SCRIPT = REPOSITORY / "bench/small_model/expert_iteration.py"
ENV = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "NEREID": NEREID}

with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)
    report = toy_writer.learn_by_heart(root, ENV, NEREID, LM, room=3)
    model = root / "toy"
    shutil.copytree(root / "training/sft/checkpoints/step-00000140/model", model)
    shutil.copy(root / "tokenizer.json", model)
    tasks = [
        {"id": stem, "code": (REPOSITORY / f"tests/tasks/{stem}.py").read_text()}
        for stem in ("relu", "abs_sqrt", "add_relu")
    ]
    for path, some in (("tasks", tasks), ("held_out", tasks[:2])):
        (root / f"{path}.jsonl").write_text("".join(json.dumps(task) + "\n" for task in some))
    (root / "round.toml").write_text(f"""
[data]
train = []
sequence_length = {3 * report["length"]}
global_batch_size = 1
[optimizer]
learning_rate = 0.001
[schedule]
kind = "constant"
steps = 4
[machine]
precision = "float32"
recompute = false
""")

    def rounds(count, *more, code=0):
        done = subprocess.run(
            [sys.executable, SCRIPT, "round.toml", model, "tasks.jsonl", "held_out.jsonl", "out", "--rounds",
                str(count),
             "--tasks", "2", "--samples", "2", "--choices", "3", "--max-share", "10", "--trials", "1",
             "--fast-inputs",
             "--max-tokens", str(report["answer_tokens"] + 8), "--device", "cpu", "--jobs", "2", *more],
            capture_output=True, text=True, cwd=root, env=ENV,
        )  # fmt: skip
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done

    rounds(2)
    first = json.loads((root / "out/curve.json").read_text())
    assert [point["round"] for point in first] == [0, 1, 2]
    assert first[0]["verified"] == 0.5, first[0]  # the answer that the toy knows by heart
    for point in first:
        assert point["times"] == "modelled" and point["tasks"] == 2, point
        low, high = point["verified_interval"]
        assert low <= point["verified"] <= high
    said = first[1]["training"]
    assert said["tasks"] == said["programs"] == said["pairs"] == 2 and said["answers"] == 4, said
    assert first[2]["model"] != first[1]["model"]

    # More rounds go on from what is there: nothing of the first ones is made again.
    stamps = {
        path: path.stat().st_mtime_ns for path in (root / "out/round-1/sft").rglob("*") if path.is_file()
    }
    shutil.rmtree(root / "out/round-2/sft")  # as if it had been stopped before
    (root / "out/round-2/trained").unlink()
    (root / "out/round-2/evaluation.json").unlink()
    rounds(3)
    points = json.loads((root / "out/curve.json").read_text())
    assert [point["round"] for point in points] == [0, 1, 2, 3]
    assert points[1] == first[1] and points[2]["training"] == first[2]["training"]
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}
    picked = [json.loads((root / f"out/round-{r}/picked.json").read_text()) for r in (1, 2, 3)]
    assert all(len(set(some)) == 2 for some in picked), picked
    svg = (root / "out/curve.svg").read_text()
    assert svg.startswith("<svg") and "Verified" in svg

    (root / "tasks.jsonl").write_text('{"id": "a"}\n')
    done = rounds(1, code=2)
    assert "tasks.jsonl:1: expected `code` or `task`" in done.stderr, done.stderr
print("expert_iteration: ok")
