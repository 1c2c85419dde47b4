"""`nereid choices` without a GPU: several Verified choices of each program with modelled seconds, resumed
where it was stopped; pairs that `nereid train data` reads; features from which tools/fit_cost_model.py gets
the compiler's own seconds.

    python tests/choices_test.py NEREID
"""

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

NEREID = os.path.abspath(sys.argv[1])
REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("fit_cost_model", REPOSITORY / "tools/fit_cost_model.py")
fit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fit)
ENV = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}

with tempfile.TemporaryDirectory() as name:
    root = pathlib.Path(name)

    def ran(*words, code=0):
        done = subprocess.run(
            [NEREID, *words], capture_output=True, text=True, cwd=root, env=ENV, timeout=1200
        )
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done

    def lines(path):
        return [json.loads(line) for line in (root / path).read_text().splitlines()]

    ran("synth", "--operators", "3", "--count", "5", "--seed", "4", "--max-elements", "2^12", "--max-work",
        "2^15",
        "-o", "tasks.jsonl", "--json")  # fmt: skip
    command = ("choices", "tasks.jsonl", "-o", "out", "--device", "cpu", "--choices", "4", "--brief",
               "--trials", "1", "--fast-inputs", "--max-share", "10")  # fmt: skip
    report = json.loads(ran(*command, "--json").stdout)
    programs = lines("out/choices.jsonl")
    assert len(programs) == 5 and {p["id"] for p in programs} == {f"task-{i}" for i in range(5)}
    measured = [p for p in programs if "left_out" not in p]
    assert len(measured) == report["programs"] >= 3 and report["timed"] == 0, report
    rows = fit.read_table(fit.TABLE)
    for program in measured:
        assert program["device"] is None and program["roofline_seconds"] > 0
        assert 2 <= len(program["choices"]) <= 4 and program["complete"]
        assert [choice.get("first", False) for choice in program["choices"]].count(True) == 1
        codes = [choice["code"] for choice in program["choices"]]
        assert len(set(codes)) == len(codes)
        for choice in program["choices"]:
            assert "seconds" not in choice and choice["plan"]
            times = fit.Times([[{"features": choice["features"], "seconds": 1.0, "own": True}]])
            (seconds,) = fit.modelled(times, rows[program["target"]], program["peaks"])
            assert abs(seconds / choice["modelled_seconds"] - 1) < 1e-6, (seconds, choice)

    # The best of each is a pair, marked as modelled.
    pairs = lines("out/pairs.jsonl")
    assert len(pairs) == report["pairs"] > 0 and report["times"] == "modelled", report
    for pair in pairs:
        assert pair["times"] == "modelled" and pair["verdict"]["verdict"] == "Verified" and "task" in pair
    data = ran("train", "data", "out/pairs.jsonl", "-o", "data", "-t",
               REPOSITORY / "models/small/tokenizer.json",
               "--json")  # fmt: skip
    assert json.loads(data.stdout)["documents"] == len(pairs), data.stdout

    # Where no program is measured nothing is said of times.
    code = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    code += "def get_inputs():\n    return [torch.rand(2**24)]\ndef get_init_inputs():\n    return []\n"
    (root / "large.jsonl").write_text(json.dumps({"code": code}) + "\n")
    none = json.loads(ran("choices", "large.jsonl", "-o", "none", "--device", "cpu", "--json").stdout)
    assert none["programs"] == none["pairs"] == 0, none
    assert none["times"] is None and none["gain"] is None, none

    # The same command has nothing to do; one that was killed continues with the programs that are missing.
    text = (root / "out/choices.jsonl").read_text()
    again = json.loads(ran(*command, "--json").stdout)
    assert again["choices"] == 0 and (root / "out/choices.jsonl").read_text() == text
    whole = text.splitlines(keepends=True)
    (root / "out/choices.jsonl").write_text("".join(whole[:3]) + whole[3][:40])
    ran(*command)
    resumed = lines("out/choices.jsonl")
    assert [p["id"] for p in resumed[:3]] == [p["id"] for p in programs[:3]]
    without = lambda p: {**p, "choices": p.get("choices")}
    key = lambda p: p["id"]
    assert sorted(map(without, resumed), key=key) == sorted(map(without, programs), key=key)

    done = ran(*command[:-1], "0.5", code=2)
    assert "other options" in done.stderr, done.stderr
    (root / "twice.jsonl").write_text(
        json.dumps({"id": "a", "code": "x"}) + "\n" + json.dumps({"id": "a", "code": "y"})
    )
    done = ran("choices", "twice.jsonl", "-o", "twice", "--device", "cpu", code=2)
    assert "the id a stands twice" in done.stderr, done.stderr
    done = ran("choices", "none.jsonl", "-o", "none", "--device", "cpu", code=2)
    assert "none.jsonl" in done.stderr, done.stderr
    done = ran("choices", "tasks.jsonl", "-o", "gpu", "--device", "cuda", code=2)
    assert "GPU" in done.stderr, done.stderr

    # Ctrl-C ends it soon.
    running = subprocess.Popen(
        [NEREID, "choices", "tasks.jsonl", "-o", "stopped", "--device", "cpu", "--choices", "64"],
        cwd=root, env=ENV, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
    stopped = root / "stopped"
    while running.poll() is None and not (stopped.exists() and list(stopped.iterdir())):
        time.sleep(0.05)
    assert running.poll() is None, "it ended before it was interrupted: the test says nothing"
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=1200)
    assert running.returncode == 130 and "same command" in said, (running.returncode, said)
print("choices: ok")
