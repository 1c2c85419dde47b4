"""The examples of examples/rewards, run with the trainers' own packages. Each package is installed into an
environment of its own below the build folder, on first use.

trainers_test.py NEREID [trl|verifiers|openenv|skyrl|atropos|verl ...]
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import environments  # noqa: E402
from environments import run  # noqa: E402
from judge_server import GOOD, WRONG, Server  # noqa: E402

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve()) if len(sys.argv) > 1 else ""
ENVIRONMENTS = pathlib.Path(NEREID).parents[1] / "trainers"
EXAMPLES = ROOT / "examples/rewards"
PACKAGES = {
    "trl": ["trl==1.16.0", "jinja2"],
    "verifiers": ["verifiers==0.4.0"],
    "openenv": ["openenv-core==0.3.0"],
    "skyrl": ["skyrl-gym==0.4.0"],
    "atropos": ["atroposlib==0.4.0"],
    "verl": ["verl==0.9.1"],
}
# Of what these ask for: torch is the one of this checkout.
WITHOUT = {"trl": ["torch", "triton"]}


def environment(name):
    return environments.environment(
        ENVIRONMENTS / name, PACKAGES[name], WITHOUT.get(name, ()), dependencies=name != "verl"
    )


class Trainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server(NEREID, cls.folder.name)
        cls.url = f"http://127.0.0.1:{cls.server.port}"

    @classmethod
    def tearDownClass(cls):
        cls.server.end()
        cls.folder.cleanup()

    def environ(self, served=False, **more):
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "NEREID_PROGRAM": NEREID,
                   "NEREID_DEVICE": "cpu", "NEREID_JOBS": "2",
                   "NEREID_KEEP_WARM": "60"}  # fmt: skip
        environ.update({"NEREID_SERVER": self.url} if served else {})
        return {**environ, **more}

    def test_trl(self):
        programs = environment("trl")
        for served in (False, True):  # in process, and by a server
            out = run(
                [programs / "python", EXAMPLES / "trl/train.py"],
                env=self.environ(served),
                cwd=self.folder.name,
            )
            rewards = [float(one) for one in re.findall(r"step \d: reward ([\d.]+)", out)]
            before, after = map(
                float, re.search(r"right: probability ([\d.]+) before, ([\d.]+) after", out).groups()
            )
            self.assertEqual(len(rewards), 3, out)
            self.assertGreater(after, before + 0.2, out)

    def test_verifiers(self):
        programs = environment("verifiers")
        environ = self.environ(PYTHONPATH=f"{ROOT / 'python'}:{EXAMPLES / 'verifiers'}", TOY_KEY="none")
        out = pathlib.Path(self.folder.name) / "outputs"
        words = ["nereid_kernels", "--rich", "False", "-o", out]
        run(
            [programs / "vf-validate", *words, "--runtime.type", "subprocess"],
            env=environ,
            cwd=self.folder.name,
        )
        (result,) = self.results(out, "results.jsonl")
        self.assertEqual((result["gold"]["valid"], result["noop"]["valid"]), (True, True), result)
        for answer, reward in ((GOOD, 1.0), (WRONG, 0.0)):
            with Model(answer) as model:
                words = [
                    "nereid_kernels",
                    "-o",
                    out,
                    "-m",
                    "toy",
                    "--client.base-url",
                    model.url,
                    "--client.api-key-var",
                    "TOY_KEY",
                ]
                words += [
                    "-r",
                    "1",
                    "--push",
                    "False",
                    "--env.agent.harness.id",
                    "null",
                    "--env.agent.runtime.type",
                    "subprocess",
                ]
                run([programs / "vf-eval", *words], env=environ, cwd=self.folder.name)
            (trace,) = self.results(out, "traces.jsonl")[-1]["traces"]
            self.assertEqual((trace["rewards"]["nereid"]["score"], trace["errors"]), (reward, []))
            self.assertEqual(trace["metrics"]["correct"], reward)
            spans = {span["name"]: span for span in trace["info"]["nereid"]["spans"]}
            self.assertIn("ModelNew", answer[spans["code"]["start"] : spans["code"]["end"]])

    @staticmethod
    def results(folder, name):
        files = sorted(folder.rglob(name), key=lambda path: path.stat().st_mtime)
        return [json.loads(line) for path in files for line in path.read_text().splitlines()]

    def test_openenv(self):
        programs = environment("openenv")
        out = run([programs / "python", EXAMPLES / "openenv/play.py", self.url], env=self.environ())
        self.assertRegex(
            out,
            r"task relu: \d+ characters\nreward 0\.0, done False: Mismatch.*\nreward 1\.0, done True:"
            r" Verified",
        )
        script = (
            "import json, sys; from openenv.cli._validation import validate_running_environment as v;"
            " print(json.dumps(v(sys.argv[1])))"
        )
        report = json.loads(run([programs / "python", "-c", script, self.url]).splitlines()[-1])
        self.assertTrue(report["passed"], report)
        self.assertEqual((report["mode"], report["standard_profile"]), ("simulation", "openenv-http/1.x"))

    def test_skyrl(self):
        out = run(
            [environment("skyrl") / "python", EXAMPLES / "skyrl/environment.py"],
            env=self.environ(served=True),
        )
        self.assertRegex(out, r"reward 0\.0, done False.*\nnext message: Mismatch.*\nreward 1\.0, done True")

    def test_atropos(self):
        programs, port = environment("atropos"), free_port()
        url = f"http://127.0.0.1:{port}"
        api = subprocess.Popen(
            [programs / "python", "-m", "uvicorn", "atroposlib.api.server:app", "--port", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder.name,
        )  # fmt: skip
        try:
            wait_for(url)
            registration = {"wandb_group": "g", "wandb_project": "p", "batch_size": 2, "max_token_len": 4096,
                            "checkpoint_dir": "",
                            "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 1}  # fmt: skip
            post(f"{url}/register", registration)
            out = run(
                [programs / "python", EXAMPLES / "atropos/send_group.py", url], env=self.environ(served=True)
            )
            self.assertIn("scores [1.0, 0.0]", out)
            with urllib.request.urlopen(f"{url}/batch") as answer:  # what a trainer reads
                (group,) = json.loads(answer.read())["batch"]
            self.assertEqual(group["scores"], [1.0, 0.0])
            for tokens, masks, advantages in zip(group["tokens"], group["masks"], group["advantages"]):
                self.assertEqual((len(tokens), len(tokens)), (len(masks), len(advantages)))
            self.assertAlmostEqual(max(group["advantages"][0]), 0.5)
            self.assertAlmostEqual(min(group["advantages"][1]), -0.5)
        finally:
            api.kill()
            api.wait()

    def test_verl(self):
        # verl's own loader and its way to call what it loads; the rest of verl wants GPUs.
        script = f"""
import asyncio, importlib.util, inspect, json, pathlib, sysconfig
path = pathlib.Path(sysconfig.get_path("purelib"), "verl/utils/import_utils.py")
spec = importlib.util.spec_from_file_location("import_utils", path)
loader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loader)
for place in ({str(EXAMPLES / "verl/reward.py")!r}, "pkg://nereid.rewards"):
    function = loader.load_extern_object(place, "compute_score")
    assert inspect.iscoroutinefunction(function)
    async def both():
        return await asyncio.gather(*(function(data_source="kernels", solution_str=text, ground_truth="relu",
                                               extra_info=dict(index=0))
                                      for text in ({GOOD!r}, {WRONG!r})))
    print(json.dumps(asyncio.run(both())))
"""
        out = run([environment("verl") / "python", "-c", script], env=self.environ(served=True))
        for line in out.splitlines():
            good, wrong = json.loads(line)
            self.assertEqual(
                (good["score"], good["acc"], wrong["score"], wrong["valid"]), (1.0, 1.0, 0.0, 1.0)
            )
        self.assertEqual(len(out.splitlines()), 2)


class Model:
    """A chat endpoint that always says the same."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                head = {"id": "c", "created": 0, "model": "toy"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                message = {"role": "assistant", "content": answer}
                if asked.get("stream"):
                    deltas = [
                        {"delta": message, "finish_reason": None},
                        {"delta": {}, "finish_reason": "stop"},
                    ]
                    events = [
                        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, **delta}]}
                        for delta in deltas
                    ]
                    events.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
                    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
                else:
                    choice = {"index": 0, "message": message, "finish_reason": "stop"}
                    text = json.dumps(
                        {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
                    )
                self.send_response(200)
                self.send_header(
                    "Content-Type", "text/event-stream" if asked.get("stream") else "application/json"
                )
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def wait_for(url, seconds=120):
    end = time.monotonic() + seconds
    while True:
        try:
            return urllib.request.urlopen(url).close()
        except urllib.error.URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    chosen = [f"Trainers.test_{name}" for name in sys.argv[1:] if name in PACKAGES]
    unittest.main(argv=[sys.argv[0], *(chosen or sys.argv[1:])])
