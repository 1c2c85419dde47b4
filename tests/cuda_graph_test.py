"""Files of `nereid optimize --cuda-graph`: verdicts on them, and when they capture, replay or run plainly.

    python tests/cuda_graph_test.py NEREID

No GPU is needed: the tracer follows captures, and graphed.py runs under a stub that replays by running
forward.
"""

import contextlib
import copy
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

import preloaded
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from nereid._written import graphed  # noqa: E402

NEREID = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve())
TASKS = pathlib.Path(__file__).resolve().parent / "tasks"
RUFF = pathlib.Path(sys.executable).parent / "ruff"


class Gpu(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


def gpu(*shape):
    return torch.randn(*shape).as_subclass(Gpu)


class Graph:
    """In the place of torch.cuda.CUDAGraph: replaying runs the module's own forward again."""

    captured, replays, capturing, stream = [], 0, False, 7
    model = None

    @staticmethod
    @contextlib.contextmanager
    def capture(graph, **options):
        Graph.captured.append(graph)
        yield

    def replay(self):
        assert self is Graph.captured[-1]
        Graph.replays += 1
        held = Graph.model.__dict__["_graph_captured"]
        again = type(Graph.model).forward.__wrapped__(Graph.model, *held.inputs)
        for old, new in zip(held.outputs, [again] if held.single else again):
            old.copy_(new)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4))

    def forward(self, x, scale=1.0):
        return self.inner(torch.relu(self.linear(x))) * scale + (1 / scale if scale else scale)


class Several(torch.nn.Module):
    def forward(self, x):
        return [x + 1, x * 2]


class Itself(torch.nn.Module):
    def forward(self, x):
        return x + 1, x


class Stubbed(unittest.TestCase):
    def setUp(self):
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        Graph.captured, Graph.replays, Graph.capturing, Graph.stream = [], 0, False, 7
        for name, value in {
            "CUDAGraph": Graph,
            "graph": Graph.capture,
            "is_available": lambda: True,
            "current_stream": lambda: Graph.stream,
            "is_current_stream_capturing": lambda: Graph.capturing,
        }.items():
            patch = unittest.mock.patch.object(torch.cuda, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def made(self, plain, fresh=True):
        made = type(plain.__name__, (plain,), {"forward": plain.forward})
        Graph.model = graphed._graphed(made, fresh)()
        return Graph.model

    def check(self, model, *args):
        result, expected = model(*args), type(model).forward.__wrapped__(model, *args)
        results = result if isinstance(result, (list, tuple)) else [result]
        for a, b in zip(results, expected if isinstance(expected, (list, tuple)) else [expected]):
            torch.testing.assert_close(torch.Tensor(a), torch.Tensor(b))
            self.assertEqual(a.stride(), b.stride())
        return result

    def test_a_call_copies_in_replays_and_copies_out(self):
        model = self.made(Net)
        results = [self.check(model, gpu(3, 4)) for _ in range(4)]
        self.assertEqual((len(Graph.captured), Graph.replays), (1, 3))
        self.assertEqual(len({r.untyped_storage().data_ptr() for r in results}), 4)
        several = self.made(Several)
        for _ in range(3):
            self.assertIs(type(self.check(several, gpu(2, 4).t())), list)

    def test_static_outputs_are_the_graph_s(self):
        model = self.made(Net, fresh=False)
        results = [self.check(model, gpu(3, 4)) for _ in range(4)]
        self.assertEqual(len({r.data_ptr() for r in results}), 2)

    def test_whatever_has_moved_is_captured_again(self):
        model, x = self.made(Net), gpu(3, 4)
        for _ in range(3):
            self.check(model, x)
        model.linear.weight.data = model.linear.weight.data.clone() * 2
        for count in (2, 2):
            self.check(model, x)
            self.assertEqual(len(Graph.captured), count)
        model.inner[0] = torch.nn.Linear(4, 4)  # one plain call, then a graph of the new module
        for _ in range(3):
            self.check(model, x)
        self.assertEqual(len(Graph.captured), 3)
        Graph.stream = 8
        self.check(model, x)
        self.assertEqual(len(Graph.captured), 4)
        for scale in (2.0, 0.0, -0.0, 1, True):  # equal numbers may differ
            self.check(model, x, scale)
        self.assertEqual(len(Graph.captured), 9)
        self.check(model, gpu(4, 3).t())  # other strides
        self.assertEqual(len(Graph.captured), 10)
        self.check(model, gpu(4, 3).t())
        self.assertEqual(len(Graph.captured), 10)

    def test_what_cannot_be_captured_runs_plainly_and_says_so(self):
        for plain, x in ((Itself, gpu(2, 2)), (Several, gpu(1, 4).expand(3, 4)), (Net, None)):
            model = self.made(plain)
            if x is None:
                x = gpu(3, 4)
                patch = unittest.mock.patch.object(Graph, "capture", side_effect=RuntimeError("no capture"))
                patch.start()
                self.addCleanup(patch.stop)
                torch.cuda.graph = Graph.capture
            self.check(model, x)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                for _ in range(3):
                    self.check(model, x)
            self.assertEqual(len(seen), 1, plain)
            self.assertIn(f"{plain.__name__} runs without a CUDA graph", str(seen[0].message))
        self.assertEqual(Graph.replays, 0)

    def test_a_cpu_and_another_capture_run_plainly(self):
        model = self.made(Net)
        for _ in range(4):
            self.check(model, torch.randn(3, 4))
        Graph.capturing = True
        for _ in range(4):
            self.check(model, gpu(3, 4))
        self.assertEqual((Graph.captured, Graph.replays), ([], 0))

    def test_a_copy_has_a_graph_of_its_own(self):
        model, x = self.made(Net), gpu(3, 4)
        for _ in range(3):
            self.check(model, x)
        globals()["Net_copied"] = type(model)
        type(model).__qualname__ = type(model).__name__ = "Net_copied"
        type(model).__module__ = __name__
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            Graph.model = other
            self.assertEqual(other.__dict__["_graph_captured"].calls, 0)
            for _ in range(3):
                self.check(other, x)
        self.assertEqual(len(Graph.captured), 3)


class Written(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_nereid(self, *arguments, code=0):
        answer = subprocess.run(
            [NEREID, *map(str, arguments), "--device", "cpu"], capture_output=True, text=True, timeout=1200
        )
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer

    def optimize(self, task, out, *more, code=0):
        common = (
            "--proposers",
            "compiler",
            "--once",
            "--no-store",
            "--keep-slower",
            "--cuda-graph",
            "--budget",
            "270s",
        )
        return self.run_nereid("optimize", task, "-o", out, *common, *more, code=code)

    def verify(self, out, *more, code=0):
        answer = self.run_nereid(
            "verify", TASKS / "mlp.py", out, "--policy", "strict", "--json", *more, code=code
        )
        return json.loads(answer.stdout)

    def test_verdicts_and_a_cpu(self):
        for static in (False, True):
            out = self.folder / f"mlp_{static}.py"
            self.optimize(TASKS / "mlp.py", out, *(["--static-outputs"] if static else []))
            text = out.read_text()
            self.assertIn(f"_graphed(ModelNew, fresh={not static})", text)
            self.assertNotIn("direct=", text.split("\n_guard(")[-1])
            clean = subprocess.run([RUFF, "check", "--isolated", "--select", "E4,E7,E9,F", "--ignore",
                                   "F841", out],
                                   capture_output=True, text=True)  # fmt: skip
            self.assertEqual(clean.returncode, 0, clean.stdout)
            self.assertEqual(self.verify(out)["verdict"], "Verified")
            forbidden = self.verify(out, "--forbid", "reused-output", code=1 if static else 0)
            self.assertEqual(forbidden["verdict"], "Disallowed" if static else "Verified")
            self.interpreted(out)

    def interpreted(self, out):
        """In Triton's interpreter, on a CPU, nothing is captured."""
        program = f"""
import importlib.util, sys, torch
def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
task, made = load({str(TASKS / "mlp.py")!r}, "task"), load({str(out)!r}, "made")
torch.set_grad_enabled(False)
model = task.Model(*task.get_init_inputs())
other = made.ModelNew(*task.get_init_inputs())
other.load_state_dict(model.state_dict())
for _ in range(3):
    inputs = task.get_inputs()
    torch.testing.assert_close(other(*inputs), model(*inputs), atol=1e-4, rtol=1e-4)
assert other.__dict__["_graph_captured"].calls == 0
"""
        answer = subprocess.run(preloaded.command("torch", "-c", program), capture_output=True, text=True,
                                timeout=1200, env={**os.environ, "TRITON_INTERPRET": "1"})  # fmt: skip
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_a_result_that_is_an_input_is_refused(self):
        task, out = self.folder / "itself.py", self.folder / "itself_made.py"
        task.write_text(
            "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
            "        return torch.relu(x), x\n\n\ndef get_inputs():\n    return [torch.randn(64, 64)]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )
        answer = self.optimize(task, out, code=2)
        self.assertIn("--cuda-graph: forward cannot be captured: a result shares memory", answer.stderr)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
