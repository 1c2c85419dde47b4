"""`nereid optimize` as a command: what it writes verifies, what it says is so, what it refuses, and Ctrl-C.

tests/optimize_command_test.py PATH/TO/nereid [--long] --long: also against torch.compile, which compiles C++
on a CPU
"""

import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from sample import sampled

NEREID = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve()
LONG = "--long" in sys.argv
TASKS = pathlib.Path(__file__).resolve().parent / "tasks"


COMPLEX = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * x.conj()


def get_inputs():
    return [torch.randn(6, 7, dtype=torch.complex64)]


def get_init_inputs():
    return []
"""
RELU = """```python
import torch
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
```"""


class OneTrick(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        knows = "torch.ops.aten.relu" in task and task.count("torch.ops.aten.") == 1
        body = json.dumps(
            {
                "choices": [
                    {"message": {"content": RELU if knows else "I do not know."}, "finish_reason": "stop"}
                ]
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        # Not tried by compiling, on each start: what the processor says of itself is taken for true.
        cls.environment = dict(
            os.environ, NEREID_STORE=str(cls.folder / "store.db"), TORCHINDUCTOR_VEC_ISA_OK="1"
        )

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def optimize(self, *arguments, code=0):
        budget = [] if "--budget" in arguments else ["--budget", "270s"]  # also of a loaded machine
        answer = subprocess.run(
            [NEREID, "optimize", *map(str, arguments), "--device", "cpu", *budget],
            capture_output=True,
            text=True,
            timeout=1200,
            env=self.environment,
        )
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer


class Optimize(Case):
    def test_what_it_writes_verifies(self):
        out = self.folder / "mlp.py"
        answer = self.optimize(
            TASKS / "mlp.py",
            "-o",
            out,
            "--policy",
            "strict",
            "--whole-only",
            "--proposers",
            "compiler",
            "--json",
            "--report",
            self.folder / "mlp.html",
        )
        result = json.loads(answer.stdout)
        self.assertEqual((result["verdict"], result["output"]), ("Verified", str(out)))
        self.assertEqual({tried["proposer"] for tried in result["tried"]}, {"compiler"})
        self.assertGreater(result["modelled_ms"], 0)
        self.assertGreater(result["reference_modelled_ms"], result["modelled_ms"])
        self.assertIsNone(result["times"])
        self.assertEqual(
            [line for line in answer.stderr.splitlines() if line.startswith("compiler: Verified")][:1],
            [line for line in answer.stderr.splitlines() if "compiler" in line][:1],
        )
        page = (self.folder / "mlp.html").read_text()
        for word in ("<svg", "mlp.py", "Verified", "class ModelNew"):
            self.assertIn(word, page)
        text = out.read_text()
        head = text[: text.index("\n\n")]
        for word in ("mlp.py", result["proposer"], "Verified on cpu", "`strict`", "cost model"):
            self.assertIn(word, head)
        verdict = subprocess.run(
            [NEREID, "verify", TASKS / "mlp.py", out, "--policy", "strict", "--device", "cpu"],
            capture_output=True,
            text=True,
            timeout=1200,
        )
        self.assertEqual(verdict.returncode, 0, verdict.stdout)
        # The same again is remembered, and gives the same file.
        out.unlink()
        again = json.loads(
            self.optimize(
                TASKS / "mlp.py",
                "-o",
                out,
                "--policy",
                "strict",
                "--whole-only",
                "--proposers",
                "compiler",
                "--json",
            ).stdout
        )
        self.assertTrue(all(tried["remembered"] for tried in again["tried"]))
        self.assertEqual(out.read_text().split("\n\n", 1)[1], text.split("\n\n", 1)[1])
        kinds = json.loads(
            subprocess.run(
                [NEREID, "store", "--json"], capture_output=True, text=True, env=self.environment
            ).stdout
        )["records"]
        self.assertGreaterEqual(kinds["verdict"], 1)
        self.assertGreaterEqual(kinds["run"], 2)

    @unittest.skipUnless(LONG, "compiles C++ (--long)")
    def test_tf32_where_it_is_allowed(self):
        task = self.folder / "product.py"
        task.write_text(
            "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x, y):\n        return x"
            " @ y\n\n\ndef get_inputs():\n    return [torch.randn(256, 256), torch.randn(256, 256)]\n\n\ndef"
            " get_init_inputs():\n    return []\n"
        )
        written = []
        for more in ((), ("--allow-tf32",)):
            out = self.folder / f"product_{len(more)}.py"
            arguments = (
                task,
                "-o",
                out,
                "--proposers",
                "compiler",
                "--once",
                "--keep-slower",
                "--json",
                *more,
            )
            result = json.loads(self.optimize(*arguments).stdout)
            self.assertEqual(result["verdict"], "Verified")
            self.assertFalse(result["remembered"])  # another question than without TF32
            self.assertTrue(0 < result["roofline"] <= 1, result["roofline"])
            written.append(out.read_text())
        self.assertIn("dot_tf32x3", written[0])
        self.assertNotIn("dot_tf32x3", written[1])
        self.assertIn('input_precision="tf32"', written[1])

    @unittest.skipUnless(LONG or sampled(["compile"], 4), "starts Inductor twice: one part in four")
    def test_against_torch_compile(self):
        out = self.folder / "compared.py"
        result = json.loads(
            self.optimize(
                TASKS / "relu.py",  # one kernel in C++, which takes seconds to compile
                "-o",
                out,
                "--policy",
                "strict",
                "--whole-only",
                "--against-compile",
                "--budget",
                "200s",
                "--json",
                "--report",
                self.folder / "compared.html",
            ).stdout
        )
        self.assertEqual({tried["proposer"] for tried in result["tried"]}, {"compiler", "inductor"})
        self.assertEqual(result["against_compile"]["verdict"], "Verified")
        self.assertEqual(set(result["baselines"]), {"eager", "compile", "candidate"})
        self.assertGreater(result["baselines"]["eager"]["call_ms"], 0)
        self.assertIn("torch.compile", (self.folder / "compared.html").read_text())
        text = out.read_text()
        self.assertIn("torch.compile", text[: text.index("\n\n")])

    def test_nothing_verified_writes_nothing(self):
        out = self.folder / "matrix_exp.py"
        answer = self.optimize(
            TASKS / "matrix_exp.py", "-o", out, "--proposers", "compiler", "--policy", "strict", code=1
        )
        self.assertFalse(out.exists())
        self.assertIn("matrix_exp", answer.stdout)
        self.assertIn("nothing is written", answer.stdout)

    def test_complex_numbers_are_refused_in_words(self):
        task = self.folder / "conjugate.py"
        task.write_text(COMPLEX)
        out = self.folder / "conjugate_kernels.py"
        answer = self.optimize(task, "-o", out, "--proposers", "compiler", code=1)
        self.assertIn("aten::mul.Tensor (conjugate.py:6; Triton has no complex type)", answer.stdout)

    @unittest.skipUnless(LONG, "Inductor is imported and compiles (--long)")
    def test_inductor_without_a_kernel_is_reported(self):
        out = self.folder / "topk.py"
        answer = self.optimize(TASKS / "topk.py", "-o", out, "--proposers", "inductor", "--json", code=1)
        result = json.loads(answer.stdout)
        self.assertFalse(out.exists())
        self.assertEqual((result["verdict"], result["output"]), ("Disallowed", None))
        self.assertIn("no Triton kernel", result["evidence"])

    def test_fragments_where_no_whole_program_can_be_had(self):
        """A model that can write one kernel and nothing else: the program is made of that and PyTorch's own
        steps."""
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OneTrick)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.environment.update(
            NEREID_HTTP_BASE=f"http://127.0.0.1:{server.server_port}/v1", NEREID_HTTP_MODEL="one-trick"
        )
        task, out = self.folder / "mixed.py", self.folder / "mixed_fast.py"
        task.write_text(
            "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n       "
            " super().__init__()\n        self.fc = torch.nn.Linear(32, 24)\n    def forward(self, x):\n     "
            "   return torch.sort(torch.relu(self.fc(x)), dim=-1)[0]\ndef get_inputs():\n    return"
            " [torch.randn(17, 32)]\ndef get_init_inputs():\n    return []\n"
        )
        arguments = [task, "-o", out, "--proposers", "http", "--repairs", "0", "--policy", "hybrid", "--json"]
        self.assertEqual(
            json.loads(self.optimize(*arguments, "--whole-only", code=1).stdout)["verdict"], "Malformed"
        )
        result = json.loads(self.optimize(*arguments).stdout)
        server.shutdown()
        self.assertEqual((result["verdict"], result["proposer"]), ("Verified", "subgraphs"))
        text = out.read_text()
        for word in (
            "torch.ops.aten.sort",
            "torch.ops.aten.linear",
            "subgraph_1_ModelNew",
            "subgraph_1_relu_kernel",
            "self.fc.weight",
        ):
            self.assertIn(word, text)
        verdict = subprocess.run([NEREID, "verify", task, out, "--policy", "hybrid", "--device", "cpu"],
                                 capture_output=True, text=True,
                                 timeout=1200)  # fmt: skip
        self.assertEqual(verdict.returncode, 0, verdict.stdout)

    def test_bad_input_is_2(self):
        out = self.folder / "never.py"
        raising = self.folder / "raising.py"
        raising.write_text(
            "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x +"
            " undefined\ndef get_inputs():\n    return [torch.randn(3)]\ndef get_init_inputs():\n    return"
            " []\n"
        )
        linked = self.folder / "linked.py"
        linked.symlink_to(raising)
        cases = [(["gone.py", "-o", out], "gone.py"), ([TASKS, "-o", out], "`nereid eval"),
                 ([TASKS / "mlp.py"], "output"), ([raising, "-o", out], "raising.py:4"),
                 ([TASKS / "mlp.py", "-o", out, "--proposers", "oracle"], "oracle"),
                 ([TASKS / "mlp.py", "-o", out, "--proposers", ","], "names no proposer"),
                 ([TASKS / "mlp.py", "-o", out, "--budget", "soon"], "--budget"),
                 ([TASKS / "mlp.py", "-o", out, "--policy", "lax"], "lax"),
                 ([TASKS / "mlp.py", "-o", out, "--target", "sm_70"],
                     "sm_70 is not a target: expected one of sm_80, sm_90, sm_100"),
                 ([TASKS / "mlp.py", "-o", self.folder / "no" / "such" / "x.py"], "folder"),
                 ([TASKS / "mlp.py", "-o", out, "--report", self.folder / "no" / "x.html"], "--report"),
                 ([raising, "-o", linked], "expected another file than"),
                 ([raising, "-o", out, "--report", raising], "expected another file than"),
                 ([TASKS / "mlp.py", "-o", out, "--report", out], "expected another file than -o"),
                 ([TASKS / "mlp.py", "-o", out, "--store", raising], "not a database")]  # fmt: skip
        for arguments, word in cases:
            with self.subTest(arguments=arguments):
                one = () if "--proposers" in arguments else ("--proposers", "compiler")  # starts no Inductor
                answer = self.optimize(*arguments, *one, code=2)
                self.assertIn(word, answer.stderr)
                self.assertEqual(answer.stdout, "")
        self.assertFalse(out.exists())

    def test_help_teaches(self):
        text = subprocess.run([NEREID, "optimize", "--help"], capture_output=True, text=True).stdout
        for word in ("Examples", "--budget", "Ctrl-C", "Exit code 1"):
            self.assertIn(word, text)


class Stopped(Case):
    """After the others: a command that is interrupted leaves no warm tracer."""

    def test_ctrl_c_keeps_the_best(self):
        for delay in (0, 0.4):  # while it searches, and while it traces what it is about to write
            out, log = self.folder / f"kept_{delay}.py", self.folder / "log"
            command = [NEREID, "optimize", TASKS / "softmax.py", "-o", out, "--device", "cpu", "--no-store"]
            command += ["--budget", "270s"]
            with open(log, "w") as errors:
                process = subprocess.Popen(
                    [*command, "--proposers", "compiler"],
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self.environment,
                    start_new_session=True,
                )
                for _ in range(600):
                    if "Verified" in log.read_text() or process.poll() is not None:
                        break
                    time.sleep(0.05)
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=1200)
            self.assertEqual(process.returncode, 0, log.read_text())
            self.assertIn("class ModelNew", out.read_text())

    def test_ctrl_c_before_anything_is_130(self):
        out = self.folder / "none.py"
        with socket.create_server(("127.0.0.1", 0)) as silent:  # asked, it never answers
            process = subprocess.Popen(
                [
                    NEREID,
                    "optimize",
                    TASKS / "softmax.py",
                    "-o",
                    out,
                    "--device",
                    "cpu",
                    "--no-store",
                    "--proposers",
                    "http",
                ],
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    **self.environment,
                    "NEREID_HTTP_BASE": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
                    "NEREID_HTTP_MODEL": "silent",
                },
            )
            silent.settimeout(60)
            asked, _ = silent.accept()
            with asked:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=1200)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
