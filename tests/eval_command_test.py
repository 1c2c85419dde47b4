"""`nereid eval` as a command: figures, files, resumption, a model over HTTP, what it refuses.

tests/eval_command_test.py PATH/TO/nereid [--long] --long: also against torch.compile, which compiles C++ on a
CPU
"""

import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
LONG = "--long" in sys.argv
ROOT = pathlib.Path(__file__).resolve().parent
HONEST = (ROOT.parent / "examples" / "layer_norm_gelu" / "honest.py").read_text()
WRONG = (ROOT.parent / "examples" / "layer_norm_gelu" / "wrong.py").read_text()


class Model(http.server.BaseHTTPRequestHandler):
    """A chat endpoint: fails once, answers wrongly, and repairs when it gets the evidence."""

    requests = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Model.requests.append(body)
        if len(Model.requests) == 1:
            self.send_response(503)
            self.end_headers()
            return
        message = body["messages"][-1]["content"]
        code = HONEST if "Mismatch" in message else WRONG
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for text in ("One kernel for all.\n", f"```python\n{code}```\n"):
            part = {"choices": [{"delta": {"content": text}, "finish_reason": None}]}
            self.wfile.write(f"data: {json.dumps(part)}\n\n".encode())
        self.wfile.write(
            b'data: {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 500}}\n\ndata:'
            b" [DONE]\n\n"
        )

    def log_message(self, *arguments):
        pass


class Eval(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.tasks, self.out = self.folder / "tasks", self.folder / "out"
        (self.tasks / "level1").mkdir(parents=True)
        self.environment = dict(os.environ, NEREID_STORE=str(self.folder / "store.db"))

    def tearDown(self):
        self.temporary.cleanup()

    def task(self, name, to=None):
        shutil.copy(ROOT / "tasks" / f"{name}.py", self.tasks / "level1" / f"{to or name}.py")

    def eval(self, *arguments, code=0, **environment):
        answer = subprocess.run(
            [NEREID, "eval", *map(str, arguments), "--device", "cpu"],
            capture_output=True,
            text=True,
            timeout=1200,
            env={**self.environment, **environment},
        )
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer

    def test_figures_files_and_resumption(self):
        for name in ("softmax", "relu", "matrix_exp"):
            self.task(name)
        arguments = [
            self.tasks,
            "-o",
            self.out,
            "--proposer",
            "compiler",
            "--policy",
            "strict",
            "--jobs",
            "2",
        ]
        summary = json.loads(self.eval(*arguments, "--json").stdout)
        self.assertEqual((summary["tasks"], summary["verified"]), (3, 2))
        self.assertAlmostEqual(summary["verified_share"], 2 / 3)
        self.assertAlmostEqual(summary["pass_at_k"]["1"], 2 / 3)
        self.assertEqual((summary["fast_p"], summary["geomean_speedup"]), ({}, None))  # nothing was measured
        self.assertEqual(set(summary["fast_p_modelled"]), {"0.8", "1", "1.2", "2"})
        results = {r["id"]: r for r in summary["results"]}
        self.assertEqual(set(summary["roofline"]), {"0.1", "0.25", "0.5", "0.75", "0.9"})
        for name in ("softmax", "relu"):
            self.assertGreater(results[f"level1/{name}"]["roofline"], 0)
            self.assertLessEqual(results[f"level1/{name}"]["roofline"], 1)
        self.assertIsNone(results["level1/matrix_exp"]["roofline"])
        self.assertIn(results["level1/matrix_exp"]["verdict"], ("Declined", "Disallowed"))
        self.assertTrue(results["level1/matrix_exp"]["reason"])
        self.assertEqual(json.loads((self.out / "summary.json").read_text())["results"], summary["results"])
        self.assertIn("level1/softmax", (self.out / "page.html").read_text())
        verdict = subprocess.run([NEREID, "verify", self.tasks / "level1" / "relu.py",
                                  self.out / "solutions" / "level1" / "relu.py",
                                  "--policy", "strict", "--device", "cpu"], capture_output=True, text=True,
                                  timeout=1200)  # fmt: skip
        self.assertEqual(verdict.returncode, 0, verdict.stdout)
        # A killed run's last line is cut short: that task alone is judged again, and so is one whose source
        # changed.
        lines = (self.out / "results.jsonl").read_text().splitlines(True)
        (self.out / "results.jsonl").write_text("".join(lines[:-1]) + lines[-1][:30])
        with open(self.tasks / "level1" / "relu.py", "a") as file:
            file.write("\n# changed\n")
        again = json.loads(self.eval(*arguments, "--json").stdout)
        self.assertEqual(again["verified"], 2)
        self.assertNotEqual(
            {r["id"]: r["task"] for r in again["results"]}["level1/relu"], results["level1/relu"]["task"]
        )
        before = (self.out / "results.jsonl").read_text()
        text = self.eval(*arguments).stdout
        self.assertEqual((self.out / "results.jsonl").read_text(), before)
        self.assertIn("verified  2 of 3", text)
        # Another question is another folder.
        self.assertIn("another question", self.eval(*arguments[:-2], "--trials", "1", code=2).stderr)

    def test_pytorch_is_timed_too_and_remembered(self):
        for name in ("relu", "softmax"):
            self.task(name)
        ways = {"eager", "compile", "inductor"} if LONG else {"eager", "graph"}
        arguments = [self.tasks, "-o", self.out, "--proposer", "compiler", "--once", "--jobs", "2", "--json"]
        with_ways = [*arguments, "--baselines", ",".join(sorted(ways))]
        results = json.loads(self.eval(*with_ways).stdout)["results"]
        self.assertEqual(len(results), 2)
        for result in results:
            self.assertEqual(set(result["baselines"]), ways | {"candidate"})
            self.assertIn("no GPU", result["baselines"]["candidate"]["declined"])
            for way in ways - {"graph", "inductor"}:
                self.assertGreater(result["baselines"][way]["call_ms"], 0, result)
            if LONG:
                self.assertEqual(result["baselines"]["inductor"]["verdict"], "Verified")
            else:
                self.assertIn("GPU", result["baselines"]["graph"]["declined"])
        # The same question continues with or without them, and nothing is timed twice.
        again = json.loads(self.eval(*with_ways).stdout)["results"]
        self.assertEqual([r["baselines"] for r in again], [r["baselines"] for r in results])

    def test_a_model_behind_http_gets_evidence_and_repairs(self):
        shutil.copy(ROOT.parent / "examples" / "layer_norm_gelu" / "reference.py", self.tasks / "task.py")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        summary = json.loads(self.eval(self.tasks, "-o", self.out, "--proposer", "http", "--json",
                                       NEREID_HTTP_BASE=f"http://127.0.0.1:{server.server_port}/v1",
                                       NEREID_HTTP_MODEL="test",
                                       NEREID_HTTP_PRICE="1,2").stdout)  # fmt: skip
        server.shutdown()
        result = summary["results"][0]
        self.assertEqual((result["verdict"], result["samples"], result["verified"]), ("Verified", 2, 1))
        self.assertAlmostEqual(result["dollars"], 2 * (1000 * 1e-6 + 500 * 2e-6))
        self.assertAlmostEqual(summary["pass_at_k"]["1"], 0.5)
        self.assertEqual(len(Model.requests), 3)
        self.assertIn("output is wrong at", Model.requests[-1]["messages"][-1]["content"])

    def test_ctrl_c_keeps_what_was_judged(self):
        for name in ("softmax", "relu", "gelu", "layer_norm", "row_sum", "swiglu"):
            self.task(name)
        arguments = [
            NEREID,
            "eval",
            self.tasks,
            "-o",
            self.out,
            "--proposer",
            "compiler",
            "--device",
            "cpu",
            "--jobs",
            "1",
        ]
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment
        )
        results = self.out / "results.jsonl"
        for _ in range(600):
            if results.exists() and len(results.read_text().splitlines()) >= 2:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 130)
        kept = results.read_text().splitlines(True)
        self.assertTrue(1 < len(kept) < 7 and all(line.endswith("\n") for line in kept), kept)
        self.eval(*arguments[2:7], "--jobs", "1")
        self.assertEqual(results.read_text().splitlines(True)[: len(kept)], kept)
        self.assertEqual(len(results.read_text().splitlines()), 7)

    def test_bad_input_is_2(self):
        self.task("relu")
        for arguments, word in [(["gone", "-o", self.out], "expected a folder"),
                                ([self.folder / "tasks" / "level1", "-o", self.tasks / "level1" / "relu.py"],
                                    "relu.py"),
                                ([self.tasks], "output"), ([self.tasks, "-o", self.out, "--baselines",
                                    "eager,warp"], "warp"), ([self.tasks, "-o", self.out, "--proposer",
                                    "http"], "NEREID_HTTP_BASE")]:  # fmt: skip
            with self.subTest(arguments=arguments):
                self.assertIn(word, self.eval(*arguments, code=2, NEREID_HTTP_BASE="").stderr)
        (self.folder / "empty").mkdir()
        self.assertIn("no tasks", self.eval(self.folder / "empty", "-o", self.out, code=2).stderr)

    def test_a_task_that_raises_is_an_error_and_the_rest_goes_on(self):
        self.task("relu")
        (self.tasks / "bad.py").write_text(
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x +"
            " nothing\ndef get_inputs():\n    return [torch.randn(3)]\ndef get_init_inputs():\n    return"
            " []\n"
        )
        (self.tasks / "broken.py").write_text("class Model\n")
        done = self.eval(self.tasks, "-o", self.out, "--proposer", "compiler", "--json", code=1)
        summary = json.loads(done.stdout)
        self.assertEqual((summary["errors"], summary["verified"]), (1, 1))
        self.assertIn("1 file is no task, without class Model or get_inputs(): broken.py", done.stderr)
        self.assertIn("nothing", {r["id"]: r for r in summary["results"]}["bad"]["reason"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
