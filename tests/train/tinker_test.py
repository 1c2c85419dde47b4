"""Reinforcement learning with `model.backend = "tinker"`, by the package `tinker` against skyrl-tx's server
on a CPU: the toy model of toy_writer.py is sampled and trained there, and judged here. Both are installed
into environments of their own below the build folder, on first use.

tinker_test.py NEREID NEREID-LM
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import toy_writer

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
from environments import environment  # noqa: E402

NEREID, LM = (os.path.abspath(path) for path in sys.argv[1:3])
ENVIRONMENTS = pathlib.Path(NEREID).parents[1] / "trainers"
BASE = ["torch", "triton", "numpy", "transformers"]  # of this checkout's environment
CLIENT = environment(ENVIRONMENTS / "tinker", ["tinker==0.12.0"], BASE)
SERVER = environment(
    ENVIRONMENTS / "skyrl", ["skyrl-tx[tinker,jax]==0.3.0", "tinker==0.12.0"], ["torch", "triton"],
    overrides=["jax>=0.8"],  # without CUDA
)  # fmt: skip
scratch = tempfile.TemporaryDirectory()
root = pathlib.Path(scratch.name)
ENV = {**os.environ, "OMP_NUM_THREADS": "1", "NEREID_KEEP_WARM": "60", "CUDA_VISIBLE_DEVICES": ""}
BASE_MODEL = "training/sft/checkpoints/step-00000140/model"


class Service:
    """skyrl-tx's server. It starts its engine by `uv run`: here by the environment's Python."""

    def __init__(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        shim = root / "shim/uv"
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f'#!/bin/sh\nwhile [ "$1" != -m ]; do shift; done\nexec {SERVER}/python "$@"\n')
        shim.chmod(0o755)
        self.start()

    def start(self):
        settings = {"max_lora_adapters": 4, "max_lora_rank": 8, "loss_chunk_size": 0}
        self.log = open(root / "server.log", "a")
        self.process = subprocess.Popen(
            [SERVER / "python", "-m", "tx.tinker.api", "--host", "127.0.0.1", "--port", str(self.port),
             "--base-model", BASE_MODEL, "--backend-config", json.dumps(settings),
             "--checkpoints-base", root / "service", "--database-url", f"sqlite:///{root}/service.db"],
            cwd=root, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**ENV, "PATH": f"{root}/shim:{ENV['PATH']}", "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        end = time.monotonic() + 600
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/api/v1/healthz", timeout=5).read()
                return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, self.said()
                time.sleep(0.5)

    def said(self):
        return (root / "server.log").read_text()[-4000:]

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


def words(name, python=CLIENT / "python"):
    return [LM, "train-rl", f"{name}.toml", "--device", "cpu", "--json"], {
        **ENV, "NEREID_PYTHON": str(python), "TINKER_API_KEY": "tml-of-a-test",
    }  # fmt: skip


def train(name, code=0, **more):
    command, env = words(name, **more)
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, timeout=3000)
    assert done.returncode == code, (done.returncode, done.stderr, service.said())
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def run_file(name, objective, steps, url, more="", model=""):
    """toy_writer's, of a model that the service has."""
    toy_writer.rl_file(root, data, name, objective, steps, more=more)
    text = (root / f"{name}.toml").read_text()
    old = f'start_from = "{BASE_MODEL}"'
    assert old in text
    new = (
        f'backend = "tinker"\nbase_model = "{BASE_MODEL}"\nurl = "{url}"\nlora_rank = 8\nreduction ='
        f' "mean"\n{model}'
    )
    (root / f"{name}.toml").write_text(text.replace(old, new).replace("0.95", "1.0"))


def checkpoint(name):
    folder = sorted((root / "training" / name / "checkpoints").iterdir())[-1]
    return folder.name, json.loads((folder / "service.json").read_text())


data = toy_writer.learn_by_heart(root, ENV, NEREID, LM)
shutil.copy(root / "tokenizer.json", root / BASE_MODEL)  # the server reads it

# What is wrong with the file or the environment is said before anything is asked.
service = Service()
for name, change, said, key in (
    ("bad-key", 'base_model = "', 'base_models = "', "base_model"),
    ("bad-sampling", "samples = 8", "samples = 8\nmin_p = 0.1", "rl.min_p"),
    ("bad-optimizer", "learning_rate", 'kind = "muon"\nlearning_rate', "optimizer.kind"),
):
    run_file(name, "grpo", 1, service.url)
    text = (root / f"{name}.toml").read_text()
    assert change in text
    (root / f"{name}.toml").write_text(text.replace(change, said))
    found = train(name, code=2)[1]
    assert key in found and f"{name}.toml" in found, found
run_file("bad-python", "grpo", 1, service.url)
assert "no package `tinker`" in train("bad-python", code=2, python=TESTS.parent / ".venv/bin/python")[1]

# Three steps: sampled and learnt there, judged here.
run_file("hrd", "hrd", 3, service.url)
out, _ = train("hrd")
assert [line["step"] for line in out] == [0, 1, 2]
for line in out:
    shares = {key: value for key, value in line.items() if key.startswith("verdict/")}
    assert abs(sum(shares.values()) - 1) < 1e-9 and line["unjudged"] == 0, line
    assert line["length"] > 10, line
    # The log-probabilities that the trainer has for our tokens are the sampler's: none is at another place.
    assert line["mismatch/mean"] < 0.1, line
print("hrd", [(line["reward"], round(line["mismatch/mean"], 5)) for line in out])
assert 0 < sum(line["reward"] for line in out) < 3, [line["reward"] for line in out]
step, saved = checkpoint("hrd")
assert step == "step-00000003" and saved["path"].startswith("tinker://"), saved

# Other objectives take their gradients by scores first.
run_file("drpo", "drpo", 1, service.url, more="updates = 2")
out, _ = train("drpo")
assert len(out) == 1 and out[0]["kl"] > 0, out  # of the second update

# The service goes away: asked again, then an error that names the checkpoint; it is resumed.
run_file("away", "grpo", 4, service.url, model="patience = 8")
command, env = words("away")
process = subprocess.Popen(
    command, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
)
assert json.loads(process.stdout.readline())["step"] == 0
while not list((root / "training/away").glob("checkpoints/step-????????/service.json")):
    assert process.poll() is None
    time.sleep(0.1)
service.kill()
_, errors = process.communicate(timeout=1200)
assert process.returncode == 3 and "the service at " + service.url in errors and "tinker://" in errors, errors
step, saved = checkpoint("away")
assert saved["path"] in errors, (saved, errors)
service.start()
out, _ = train("away")
assert [line["step"] for line in out] == list(range(int(step[-8:]), 4)), (step, out)

# Ctrl-C while the service samples: over within seconds, and resumed.
run_file("stopped", "grpo", 3, service.url)
command, env = words("stopped")
process = subprocess.Popen(
    command, cwd=root, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
)
assert json.loads(process.stdout.readline())["step"] == 0
process.send_signal(signal.SIGINT)
began = time.monotonic()
_, errors = process.communicate(timeout=1200)
assert process.returncode == 130 and "run the same command to resume" in errors, errors
print(f"Ctrl-C: over after {time.monotonic() - began:.1f} s")
out, _ = train("stopped")
assert out[-1]["step"] == 2, out
service.kill()
print("ok")
