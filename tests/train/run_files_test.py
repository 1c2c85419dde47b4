"""The run files in runs/: each as it stands, but for a toy's sizes and paths, does its two steps on the CPU;
so there is no unknown key in them, and none that does not go with the others. The scripts in the same folder
make what the files read: pairs, a tokenizer learnt from them, tasks."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
TASKS = [REPOSITORY / f"tests/tasks/{name}.py" for name in ("relu", "add_relu")]
tokenizer = REPOSITORY / "models/small/tokenizer.json"
VOCAB = 6144


def text(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {text(v)}" for key, v in value.items()) + "}"
    return json.dumps(value)


def written(path, tables):
    top = "".join(f"{key} = {text(value)}\n" for key, value in tables.items() if not isinstance(value, dict))
    rest = "".join(
        f"[{name}]\n" + "".join(f"{key} = {text(value)}\n" for key, value in table.items())
        for name, table in tables.items()
        if isinstance(table, dict)
    )
    path.write_text(top + rest)


def replace(table, **values):
    """Those of these keys that are there."""
    table.update({key: value for key, value in values.items() if key in table})


def toy(tables, root):
    """The same at toy size."""
    replace(
        tables["model"], start_from="start", tokenizer=str(tokenizer), max_position_embeddings=2048, **SHAPE
    )
    replace(
        tables["data"],
        train=["data"],
        held_out=["data"],
        sequence_length=2048 if "rl" in tables else 128,
        global_batch_size=2,
        micro_batch_size=1,
    )
    schedule = tables["schedule"]
    if schedule.pop("seconds", None):
        schedule["steps"] = 2
    replace(schedule, steps=2, warmup_steps=1, decay_steps=1)
    replace(tables["machine"], precision="float32")  # without a GPU bfloat16 is slow
    if "sft_mix" in tables:
        replace(tables["sft_mix"], data=["data"], train=["data"], global_batch_size=1, rows=1)
    if "rl" in tables:
        rl = tables["rl"]
        replace(
            rl,
            tokenizer=str(tokenizer),
            prompts_per_step=2,
            samples=2,
            max_tokens=24,
            held_out_tasks=1,
            sequences=4,
        )
        rl["judge_device"] = "cpu"
        for key in ("tasks", "held_out"):
            if key in rl:
                rl[key] = ["tasks.jsonl"] * len(rl[key])
    return tables


with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    (root / "tasks.jsonl").write_text(
        "".join(json.dumps({"code": task.read_text()}) + "\n" for task in TASKS)
    )
    (root / "lines.jsonl").write_text(
        "".join(
            json.dumps({"prompt": f"x = {i}", "answer": f"y = x + {i}<|im_end|>"}) + "\n" for i in range(20)
        )
    )
    subprocess.run(
        [NEREID, "train", "data", "lines.jsonl", "-o", "data", "-t", str(tokenizer)],
        cwd=root,
        env=ENV,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    written(
        root / "start.toml",
        {
            "model": {**SHAPE, "vocab_size": VOCAB, "max_position_embeddings": 2048, "eos_token_id": 2},
            "data": {"train": ["data"], "sequence_length": 128, "global_batch_size": 2},
            "schedule": {"steps": 1},
            "machine": {"precision": "float32"},
        },
    )
    subprocess.run(
        [LM, "train-sft", "start.toml", "--device", "cpu"], cwd=root, env=ENV, check=True, capture_output=True
    )
    (root / "training/start/checkpoints/step-00000001/model").rename(root / "start")
    shutil.copy(tokenizer, root / "start")  # as a published model has one, for files that name none
    files = sorted((REPOSITORY / "runs").glob("*.toml"))
    assert {"tiny.toml", "tiny-rl.toml", "small-sft.toml", "small-rl.toml"} <= {file.name for file in files}
    for file in files:
        tables = tomllib.loads(file.read_text())
        # What begins with another file's model begins with its last checkpoint.
        if after := re.fullmatch(
            r"training/(.+)/checkpoints/step-0*(\d+)/model", tables["model"].get("start_from", "")
        ):
            before = tomllib.loads((REPOSITORY / f"runs/{after[1]}.toml").read_text())
            assert int(after[2]) == before["schedule"]["steps"], (
                file.name,
                tables["model"]["start_from"],
                before["schedule"],
            )
        written(root / file.name, toy(tables, root))
        done = subprocess.run(
            [NEREID, "train", "rl" if "rl" in tables else "sft", file.name, "--device", "cpu", "--json"],
            cwd=root,
            env=ENV,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (file.name, done.returncode, done.stderr, (root / file.name).read_text())
        steps = [json.loads(line) for line in done.stdout.splitlines()]
        assert [step["step"] for step in steps] == [0, 1] and all(
            step["loss"] is not None for step in steps
        ), (file.name, steps)
        model = root / "training" / file.stem / "checkpoints/step-00000002/model"
        assert (model / "config.json").exists() and f"{file.stem}: all 2 steps are done" in done.stderr, (
            file.name,
            done.stderr,
        )
        assert (model / "tokenizer.json").exists() or "rl" not in tables, file.name
        print(f"{file.name}: {[round(step['loss'], 4) for step in steps]}")

    # 20 programs' pairs for 12,000, 4 tasks of each level for 3,000.
    scripts = {**ENV, "NEREID": NEREID, "JOBS": "2"}
    subprocess.run(
        [REPOSITORY / "runs/small-tokenizer", root / "pairs", root / "learnt.json", "20"],
        cwd=REPOSITORY,
        env=scripts,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    learnt = json.loads((root / "learnt.json").read_text())
    phrases = [token["content"] for token in learnt["added_tokens"] if not token["special"]]
    assert len(phrases) == 500 and any(" + tl.arange(0, BLOCK)" in phrase for phrase in phrases), phrases[:20]
    pair = json.loads((root / "pairs/train-2-small.jsonl").read_text().splitlines()[0])
    counted = json.loads(
        subprocess.run(
            [NEREID, "tokenize", "-t", root / "learnt.json", "--count", "--json", "-"],
            input=pair["code"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )["tokens"]
    assert counted < len(pair["code"]) / 5, (counted, len(pair["code"]))
    subprocess.run(
        [REPOSITORY / "runs/small-rl-data", root / "rl", "4"],
        cwd=REPOSITORY,
        env=scripts,
        check=True,
        capture_output=True,
    )
    tasks = sorted((root / "rl").glob("train*.jsonl"))
    for script in (
        "small-data",
        "small-tokenizer",
        "small-rl-data",
    ):  # without what they need they say what that is
        done = subprocess.run(
            [REPOSITORY / "runs" / script], cwd=REPOSITORY, env=scripts, capture_output=True, text=True
        )
        assert done.returncode == 2 and f"runs/{script} FOLDER" in done.stderr, (script, done)
    assert [len(path.read_text().splitlines()) for path in tasks] == [2] * 6, tasks
    print(
        f"small-tokenizer: {len(pair['code'])} characters in {counted} tokens; small-rl-data: {len(tasks)}"
        " lists"
    )
