"""`nereid.optimize(..., operators=True)`: torch.export sees verified kernels as an operator.

    tests/python/operators_test.py PATH/TO/nereid

Programs run in Triton's interpreter. What Inductor sees is looked at in a process without it, where nothing
can run.
"""

import inspect
import io
import linecache
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

AS_ON_A_GPU = "--as-on-a-gpu" in sys.argv
if AS_ON_A_GPU:
    sys.argv.remove("--as-on-a-gpu")
else:
    os.environ["TRITON_INTERPRET"] = "1"
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    os.environ["NEREID_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER), str(FOLDER.parent)]
_store = tempfile.TemporaryDirectory()
os.environ["NEREID_STORE"] = _store.name + "/store.db"

import interpreted  # noqa: E402
import nereid  # noqa: E402
import preloaded  # noqa: E402
import torch  # noqa: E402
from nereid._optimize import kernels, operators  # noqa: E402
from torch import nn  # noqa: E402

QUICK = dict(policy="hybrid", budget="120s", first=True, proposers="compiler", seed=5, device="cpu", trials=1)


class Tied(nn.Module):
    """A tied weight, an output that is an argument, and a dictionary."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 16)
        self.down.weight = self.up.weight

    def forward(self, x):
        return {"y": self.down(torch.relu(self.norm(self.up(x)))), "x": x}


def calls(program):
    return [str(node.target) for node in program.graph.nodes if "nereid.kernels_" in str(node.target)]


class Exported(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        interpreted.libdevice()
        torch.manual_seed(2)
        cls.x = torch.randn(4, 16)
        cls.original = Tied().eval().requires_grad_(False)
        cls.fast = nereid.optimize(cls.original, (cls.x,), operators=True, **QUICK)
        assert cls.fast.nereid_reason is None, cls.fast.nereid_reason
        cls.program = torch.export.export(cls.fast, (cls.x,))

    def near(self, got, want):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)

    def test_the_program_is_the_operator(self):
        self.assertEqual(len(calls(self.program)), 1)
        computing = [n for n in self.program.graph.nodes if str(n.target).startswith("aten.")]
        self.assertEqual(computing, [])
        for x in (
            torch.randn(4, 16),
            torch.randn(16, 4).t(),
            torch.randn(4, 32)[:, ::2],
            torch.randn(65)[1:].view(4, 16),
        ):
            self.near(self.program.module()(x), self.original(x))

    def test_it_is_stored_and_has_weights_of_its_own(self):
        stored = io.BytesIO()
        torch.export.save(self.program, stored)
        stored.seek(0)
        module = torch.export.load(stored).module()
        self.near(module(self.x), self.original(self.x))
        changed = Tied().requires_grad_(False)
        module.load_state_dict({name: changed.state_dict()[name] for name in module.state_dict()})
        self.near(module(self.x), changed(self.x))

    def test_kernels_have_their_lines(self):  # Inductor asks for them
        loaded, _ = kernels.load(self.fast._nereid_plan.source)
        linecache.checkcache()
        functions = [each.fn for each in vars(loaded).values() if hasattr(each, "fn")]
        self.assertTrue(functions)
        for function in functions:
            lines, _ = inspect.getsourcelines(function)
            self.assertIn(f"def {function.__name__}", "".join(lines))

    def test_the_optimized_module_goes_on(self):
        self.assertIsNone(nereid.explain(self.fast, self.x))

    def test_elsewhere_the_originals_operators_are_seen(self):
        sizes = ({0: torch.export.Dim("batch")},)
        for name, program in (
            ("any batch", torch.export.export(self.fast, (self.x,), dynamic_shapes=sizes)),
            ("another size", torch.export.export(self.fast, (torch.randn(5, 16),))),
            ("traced by Dynamo", torch.export.export(self.fast, (self.x,), strict=True)),
        ):
            with self.subTest(name):
                self.assertEqual(calls(program), [])
        self.fast.requires_grad_(True)
        try:
            self.assertEqual(calls(torch.export.export(self.fast, (self.x,))), [])
            with torch.no_grad():
                self.assertEqual(len(calls(torch.export.export(self.fast, (self.x,)))), 1)
        finally:
            self.fast.requires_grad_(False)

    def test_without_the_option_nothing_of_ours_is_seen(self):
        plain = nereid.Optimized(
            self.original, self.fast._nereid_plan, nereid._optimize.plan.Settings(1, "ieee", {})
        )
        self.assertEqual(calls(torch.export.export(plain, (self.x,))), [])

    def test_inductor_sees_triton_kernels(self):
        words = preloaded.command("torch", __file__, os.environ["NEREID_PROGRAM"], "--as-on-a-gpu")
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        done = subprocess.run(words, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertIn("without a GPU: []", done.stdout)
        self.assertRegex(done.stdout, "(triton_kernel_wrapper_functional.*){2}")
        self.assertNotIn("aten.linear", done.stdout)


def as_on_a_gpu():
    """Prints what Inductor is handed; it stops where a GPU would be needed."""
    from torch._dynamo.backends.common import aot_autograd

    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16)).requires_grad_(False)
    x, seen = torch.randn(4, 16), []
    fast = nereid.optimize(model, (x,), operators=True, **QUICK)
    print("without a GPU:", calls(torch.export.export(fast, (x,))))
    operators.no_device = lambda *_: None
    program = torch.export.export(fast, (x,))
    assert len(calls(program)) == 1, program.graph

    def compiler(graph, _):
        seen.append(" ".join(str(node.target) for node in graph.graph.nodes))
        raise RuntimeError("seen")

    try:
        torch.compile(program.module(), backend=aot_autograd(fw_compiler=compiler))(x)
    except Exception as error:
        assert "seen" in str(error), error
    print(*seen)


if __name__ == "__main__":
    if AS_ON_A_GPU:
        as_on_a_gpu()
    else:
        unittest.main(verbosity=2)
