"""A run is launched, watched, stopped, resumed and moved by the commands of docs/runs.md: what it learns is
bit by bit what it learns without a break, and changes of its run file are named key by key."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import toy_writer
from safetensors.numpy import load_file

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}
data = toy_writer.learn_by_heart(root, ENV, NEREID, LM, bare=True)
STEPS = 4


def ran(*arguments, code=0):
    return toy_writer.ran(root, ENV, NEREID, *arguments, code=code)


def rl_file(name, steps=STEPS, **how):
    return toy_writer.rl_file(root, data, name, "grpo", steps, **how) + ".toml"


def train(file, *more, **how):
    return subprocess.Popen(
        [NEREID, "train", "rl", file, "--device", "cpu", "--json", *more],
        cwd=root,
        env=ENV,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def lines_of(folder):
    return [json.loads(line) for line in (root / folder / "metrics.jsonl").read_text().splitlines()]


def same(a, b):
    """Figures of all steps but times, rollouts, and the last checkpoint."""
    assert len(lines_of(a)) == len(lines_of(b)) == STEPS
    for one, other in zip(lines_of(a), lines_of(b), strict=True):
        for figure in other:
            if not toy_writer.is_time(figure) and figure not in ("judge_restarts", "judged", "saved"):
                assert one[figure] == other[figure], (figure, one, other)
    checkpoints = [root / run / f"checkpoints/step-{STEPS:08}" for run in (a, b)]
    for name in ("model/model.safetensors", "optimizer-0-of-1.safetensors"):
        one, other = (load_file(folder / name) for folder in checkpoints)
        assert all((one[tensor] == other[tensor]).all() for tensor in one) and one.keys() == other.keys(), (
            name
        )


def watched(run, *more):
    return [json.loads(line) for line in ran("runs", "watch", run, "--json", *more).stdout.splitlines()]


# Launched and watched to its end: a line for each step, and the shares of its time.
process = train(rl_file("whole"))
while not (root / "training/whole/metrics.jsonl").exists():
    time.sleep(0.05)
steps = watched("training/whole", "--every", "0.1")
_, errors = process.communicate()
assert process.returncode == 0, errors
assert [line["step"] for line in steps][-1] == STEPS - 1 and steps[-1]["state"] == "finished", steps
assert steps[-1]["steps"] == STEPS and steps[-1]["left_s"] == 0, steps[-1]
for line in steps:
    if line["step"] is None:
        continue  # before the first step
    assert abs(sum(line["wall"].values()) - 1) < 1e-6 and line["wall"]["engine"] > 0, line
    assert 0 < line["busy"]["judge"] and line["tokens_per_s"] > 0 and line["rollouts_per_h"] > 0, line
    assert line["verified"] == line["reward"], line
text = ran("runs", "watch", "training/whole").stdout
assert f"step {STEPS}/{STEPS}, loss" in text and "engine" in text and "training/whole: finished" in text, text
(last,) = watched("training/whole", "--once")
assert last["step"] == STEPS - 1 and last["seconds"] > 0

# Stopped within seconds in the middle of a step, moved with what it refers to, resumed there: the same.
rl_file("moved")
text = (root / "moved.toml").read_text()
inputs = root / "inputs"
inputs.mkdir()
shutil.copytree(root / "prompts", inputs / "prompts")
for name in ("tokenizer.json", "tasks.jsonl"):
    shutil.copy(root / name, inputs)
text = text.replace('"tokenizer.json"', f'"{inputs}/tokenizer.json"').replace(
    '"tasks.jsonl"', f"'{inputs}/tasks.jsonl'"
)
(root / "moved.toml").write_text(text)
process = train("moved.toml", "-o", str(root / "training/moved"))
process.stdout.readline()
process.send_signal(signal.SIGSTOP)  # it is in the middle of its steps for as long as is needed
(now,) = watched("training/moved", "--once")
assert now["state"] == "running" and now["left_s"] > 0, now
assert "a run is writing there" in ran("runs", "move", "training/moved", "elsewhere", code=2).stderr
stop = subprocess.Popen(
    [NEREID, "runs", "stop", "training/moved", "--json"], cwd=root, stdout=subprocess.PIPE, text=True
)
while b"stop" not in pathlib.Path(f"/proc/{stop.pid}/cmdline").read_bytes():
    time.sleep(0.01)
time.sleep(0.3)  # its signal is on its way
process.send_signal(signal.SIGCONT)
clock = time.monotonic()
stopped = json.loads(stop.communicate()[0])
seconds = time.monotonic() - clock
assert process.wait() == 130 and seconds < 100, seconds
assert stopped["state"] == "stopped" and 0 <= stopped["step"] < STEPS - 1, stopped
assert stopped["resume"].startswith("nereid train rl moved.toml -o "), stopped
kept = len(lines_of("training/moved"))
assert "expected a run that is running" in ran("runs", "stop", "training/moved", code=2).stderr
away = root / "away"
shutil.move(inputs, away)  # as on another machine
assert (
    "expected a name that is free" in ran("runs", "move", "training/moved", "training/whole", code=2).stderr
)
lost = json.loads(ran("runs", "move", "training/moved", "disk/b", "--json").stdout)
assert lost["paths"] == {} and {line.split(": ")[0] for line in lost["missing"]} == {
    "rl.tokenizer",
    "rl.tasks",
}
assert not (root / "training/moved").exists()
moved = json.loads(ran("runs", "move", "disk/b", "disk/b", "--path", f"{inputs}={away}", "--json").stdout)
assert moved["missing"] == [] and moved["paths"] == {
    f"{inputs}/tasks.jsonl": f"{away}/tasks.jsonl",
    f"{inputs}/tokenizer.json": f"{away}/tokenizer.json",
}, moved
process = train("disk/b/run.toml", "-o", "disk/b")
out, errors = process.communicate()
assert process.returncode == 0 and json.loads(out.splitlines()[0])["step"] == kept, (out, errors)
same("disk/b", "training/whole")
assert "OLD=NEW" in ran("runs", "move", "disk/b", "disk/b", "--path", "nothing", code=2).stderr

# Killed on the spot: watched as stopped, and resumed from its last checkpoint.
process = train(rl_file("killed"))
process.stdout.readline()
process.send_signal(signal.SIGKILL)
process.communicate()
(now,) = watched("training/killed", "--once")
assert now["state"] == "stopped", now

# A changed run file: each key, with both values; comments do not count.
file = root / "killed.toml"
file.write_text("# another comment\n" + file.read_text())
text = file.read_text()
file.write_text(
    text.replace("samples = 8", "samples = 4").replace("temperature = 0.95", "temperature = 0.950")
)
refused = train("killed.toml")
_, errors = refused.communicate()
assert refused.returncode == 2 and "rl.samples: 8, now 4" in errors and "temperature" not in errors, errors
file.write_text(
    text.replace(f"steps = {STEPS}", f"steps = {STEPS + 1}").replace(
        'precision = "float32"', 'precision = "float32"\nrecompute = false'
    )
)
refused = train("killed.toml")
_, errors = refused.communicate()
assert refused.returncode == 2 and f"schedule.steps: {STEPS}, now {STEPS + 1}" in errors, errors
assert "machine.recompute: absent, now false" in errors and "--accept-changes" in errors, errors
done = train("killed.toml", "--accept-changes")
_, errors = done.communicate()
assert done.returncode == 0 and f"schedule.steps: {STEPS}, now {STEPS + 1}" in errors, errors
assert len(lines_of("training/killed")) == STEPS + 1
assert f"steps = {STEPS}\n" in (root / "training/killed/run-1.toml").read_text()
assert (root / "training/killed/run.toml").read_text() == file.read_text()

# The live page: its content, the last step as an object; requests of other sites are refused.
page = subprocess.Popen(
    [NEREID, "runs", "watch", "training/whole", "--port", "0", "--json"],
    cwd=root,
    stdout=subprocess.PIPE,
    text=True,
)
port = int(json.loads(page.stdout.readline())["url"].rstrip("/").rsplit(":", 1)[1])


def asked(path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


assert "<main" in asked("/")[1] and asked("/none")[0] == 404 and asked("/", "POST")[0] == 405
status, content = asked("/content")
assert status == 200 and "finished" in content and "Time of the last step" in content and "<svg" in content
assert json.loads(asked("/run.json")[1])["step"] == STEPS - 1
assert asked("/content", Host="a.name.elsewhere")[0] == 403
page.send_signal(signal.SIGINT)
assert page.wait(10) == 0
assert "expected the folder of a run" in ran("runs", "watch", ".", code=2).stderr
assert "No such file" in ran("runs", "watch", "none", "--port", "0", code=2).stderr
print("launched, watched, stopped, resumed and moved")
