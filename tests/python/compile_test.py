"""`torch.compile(model, backend="nereid")`: each call computes what eager PyTorch does, by verified kernels
or by the fallback.

    tests/python/compile_test.py PATH/TO/nereid

Kernels run in Triton's interpreter on the CPU; the judge is the real one.
"""

import contextlib
import copy
import gc
import os
import pathlib
import sys
import tempfile
import threading
import tomllib
import unittest
import unittest.mock
import warnings

os.environ["TRITON_INTERPRET"] = "1"
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    os.environ["NEREID_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]
_store = tempfile.TemporaryDirectory()
os.environ["NEREID_STORE"] = _store.name + "/store.db"

import interpreted  # noqa: E402
import nereid  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from nereid import _compile, _program  # noqa: E402
from nereid._compile.graph import _not_ours  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

interpreted.libdevice()
QUICK = dict(
    budget="120s", first=True, proposers="compiler", seed=5, device="cpu", trials=1, fallback="eager"
)


@torch.library.custom_op("nereid_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x):
        return self.down(F.gelu(self.norm(self.up(x))))


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        x = self.a(x).relu()
        torch._dynamo.graph_break()
        return torch.softmax(self.b(x), -1)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x):
        self.seen += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return (x - self.mean) * self.seen


class Custom(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        y = torch.softmax(self.fc(x), -1)
        y = twice(y)
        return F.silu(y) * y + x


class Views(nn.Module):
    def forward(self, x, y):
        z = x * y
        return x.view(-1), z, z[1:], z.t()


class Base(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(3)
        gc.collect()
        self._earlier = {graph.number for graph in nereid.compiled_graphs()}

    def graphs(self):
        """The graphs that this test made, without the parts of split ones."""
        made = [graph for graph in nereid.compiled_graphs() if graph.number not in self._earlier]
        parts = {part.number for graph in made for part in graph.parts}
        return [graph for graph in made if graph.number not in parts and graph._depth == 0]

    def compiled(self, module, **options):
        return torch.compile(module, backend="nereid", options={**QUICK, **options})

    def same(self, got, want):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@contextlib.contextmanager
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


class Kernels(Base):
    @torch.no_grad()
    def test_a_model_runs_verified_kernels(self):
        module = Mlp()
        fast = self.compiled(module)
        x = torch.randn(4, 8)
        with no_warnings():
            for _ in range(3):
                self.same(fast(x), module(x))
        (graph,) = self.graphs()
        self.assertEqual((graph.calls, graph.fallback_calls, graph.reason), (3, 0, None))
        self.assertTrue(all(verdict.verified for verdict in graph.verdicts))

    @torch.no_grad()
    def test_new_weights_count_at_once(self):
        module = Mlp()
        fast, x = self.compiled(module), torch.randn(4, 8)
        self.same(fast(x), module(x))
        module.up.weight.mul_(3)
        self.same(fast(x), module(x))
        module.load_state_dict({name: torch.randn_like(value) for name, value in module.state_dict().items()})
        self.same(fast(x), module(x))
        module.up.weight = nn.Parameter(torch.randn(16, 8), requires_grad=False)
        self.same(fast(x), module(x))

    @torch.no_grad()
    def test_two_modules_of_one_class(self):
        one, other = Mlp(), Mlp()
        fast, fast_too, x = self.compiled(one), self.compiled(other), torch.randn(4, 8)
        for _ in range(2):
            self.same(fast(x), one(x))
            self.same(fast_too(x), other(x))

    @torch.no_grad()
    def test_a_graph_break_gives_several_graphs(self):
        module = Breaks()
        fast, x = self.compiled(module), torch.randn(4, 8)
        with no_warnings():
            self.same(fast(x), module(x))
        self.assertEqual([graph.calls for graph in self.graphs()], [1, 1])

    @torch.no_grad()
    def test_a_function(self):
        fast = self.compiled(lambda x, y: torch.softmax(x + y, -1))
        x, y = torch.randn(4, 8), torch.randn(8)
        self.same(fast(x, y), torch.softmax(x + y, -1))
        self.assertEqual(self.graphs()[0].calls, 1)

    def test_inference_mode(self):
        module = Mlp()
        fast = self.compiled(module)
        with torch.inference_mode(), no_warnings():
            x = torch.randn(4, 8)
            self.same(fast(x), module(x))
        self.assertEqual(self.graphs()[0].calls, 1)

    @torch.no_grad()
    def test_autocast_around_and_inside(self):
        module = nn.Linear(8, 8)
        fast, x = self.compiled(module), torch.randn(4, 8)
        with torch.autocast("cpu", dtype=torch.float16):  # bfloat16 products are beyond the interpreter
            got, want = fast(x), module(x)
        self.assertEqual(got.dtype, torch.float16)
        torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)
        self.same(fast(x), module(x))

    @torch.no_grad()
    def test_views_share_memory_as_eagerly(self):
        fast = self.compiled(Views())
        x, y = torch.randn(4, 8), torch.randn(4, 8)
        a, z, b, t = fast(x, y)
        self.same((a, z, b, t), Views()(x, y))
        x.add_(1)
        self.same(a, x.view(-1))
        z.add_(1)
        self.same((b, t), (z[1:], z.t()))

    @torch.no_grad()
    def test_under_a_larger_compiled_model(self):
        inner = nereid.optimize(
            Mlp(),
            (torch.randn(4, 8),),
            policy="hybrid",
            **{k: v for k, v in QUICK.items() if k != "fallback"},
        )
        module = nn.Sequential(inner, nn.Tanh())
        x = torch.randn(4, 8)
        self.same(self.compiled(module)(x), torch.tanh(inner._nereid_original(x)))


class Sizes(Base):
    """Never a wrong answer at another size."""

    @torch.no_grad()
    def test_static_shapes_give_a_graph_each(self):
        module = Mlp()
        fast = torch.compile(module, backend="nereid", options=QUICK, dynamic=False)
        for rows in (4, 1, 7, 4):
            x = torch.randn(rows, 8)
            self.same(fast(x), module(x))
        self.assertEqual(sum(graph.calls for graph in self.graphs()), 4)

    @torch.no_grad()
    def test_dynamic_shapes_get_kernels_for_each_set_of_sizes(self):
        module = Mlp()
        fast = torch.compile(module, backend="nereid", options={**QUICK, "specialize": 2}, dynamic=True)
        for rows in (4, 5, 4):
            x = torch.randn(rows, 8)
            with no_warnings():
                self.same(fast(x), module(x))
        with self.assertWarnsRegex(UserWarning, "another set of sizes than the 2"):
            self.same(fast(torch.ones(6, 8)), module(torch.ones(6, 8)))
        for rows in (9, 5, 4):
            x = torch.randn(rows, 8)
            self.same(fast(x), module(x))
        (graph,) = self.graphs()
        self.assertEqual((graph.calls, graph.fallback_calls), (5, 2))

    def test_numbers_of_dynamic_shapes_are_on_the_cpu(self):
        with FakeTensorMode():
            args = (torch.empty(4, 8, device="cuda"), torch.empty(()), 4)
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("TRITON_INTERPRET", None)
            self.assertIsNone(_not_ours(args, [0]))
            self.assertIn("tensors on cpu, cuda", _not_ours(args, [0, 1]))
            self.assertIn("no argument is a tensor", _not_ours(args, []))

    @torch.no_grad()
    def test_sizes_that_the_model_computes_with(self):
        module = lambda x: (x.view(x.shape[0] // 2, -1) * x.shape[0]).cumsum(-1)  # noqa: E731
        fast = torch.compile(module, backend="nereid", options=QUICK, dynamic=True)
        for rows in (4, 6, 8):
            x = torch.randn(rows, 8)
            self.same(fast(x), module(x))

    @torch.no_grad()
    def test_numbers_that_change(self):
        module = lambda x, by: x * by + 1  # noqa: E731
        fast, x = self.compiled(module), torch.randn(4, 8)
        for by in (2, 3, 4.5, 5.5, True):
            self.same(fast(x, by), module(x, by))

    @torch.no_grad()
    def test_strides_and_dtypes(self):
        module = lambda x: torch.softmax(x, -1)  # noqa: E731
        fast = torch.compile(module, backend="nereid", options=QUICK, dynamic=True)
        for x in (
            torch.randn(4, 8),
            torch.randn(8, 4).t(),
            torch.randn(4, 16)[:, ::2],
            torch.randn(4, 8).double(),
        ):
            self.same(fast(x), module(x))

    @torch.no_grad()
    def test_a_graph_called_by_hand_at_another_size(self):
        """Dynamo's guards are not needed for a right answer."""
        graph = torch.fx.symbolic_trace(lambda x: (x * 2).sum(0))
        for node in graph.graph.nodes:
            node.meta["example_value"] = torch.randn(4, 8)
        compiled = nereid.compile_backend(graph, [torch.randn(4, 8)], options=QUICK)
        for shape in ((4, 8), (5, 8), (8, 8), (1, 8)):
            x = torch.randn(shape)
            self.same(compiled(x), (x * 2).sum(0))


class State(Base):
    @torch.no_grad()
    def test_buffers_that_forward_writes_to(self):
        module = Counts()
        alone, fast = copy.deepcopy(module), self.compiled(module)
        for _ in range(3):
            x = torch.randn(4, 8)
            self.same(fast(x), alone(x))
            self.same(dict(module.state_dict()), dict(alone.state_dict()))
        (graph,) = self.graphs()
        self.assertEqual(graph.calls, 3, graph)

    @torch.no_grad()
    def test_running_statistics_in_training_mode(self):
        module = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6))
        alone, fast = copy.deepcopy(module), self.compiled(module)
        for _ in range(3):
            x = torch.randn(16, 8)
            self.same(fast(x), alone(x))
            self.same(dict(module.state_dict()), dict(alone.state_dict()))

    @torch.no_grad()
    def test_arguments_that_are_written_to(self):
        def add(x, out):
            out.add_(x)
            return out * 2

        fast, x = self.compiled(add), torch.randn(4, 8)
        out = torch.zeros(4, 8)
        self.same(fast(x, out), x * 2)
        self.same(out, x)
        both = torch.ones(4, 8)
        self.same(fast(both, both), torch.full((4, 8), 4.0))
        wide = torch.ones(8, 8)
        self.same(fast(wide[:4], wide[4:]), torch.full((4, 8), 4.0))
        with self.assertRaisesRegex(RuntimeError, "single memory location"):  # as eagerly
            fast(wide[:4], wide[2:6])

    @torch.no_grad()
    def test_a_first_run_that_fails_leaves_no_trace(self):
        module = Counts()
        alone, fast, x = copy.deepcopy(module), self.compiled(module), torch.randn(4, 8)
        real = nereid.Optimized._nereid_run

        def broken(optimized, tensors):
            real(optimized, tensors)
            raise RuntimeError("no such kernel image")

        nereid.Optimized._nereid_run = broken
        try:
            with self.assertWarnsRegex(UserWarning, "do not run here.*no such kernel image"):
                self.same(fast(x), alone(x))
        finally:
            nereid.Optimized._nereid_run = real
        self.same(dict(module.state_dict()), dict(alone.state_dict()))
        self.same(fast(x), alone(x))
        self.assertEqual(self.graphs()[0].calls, 0)


class Training(Base):
    def test_gradients_are_the_originals(self):
        module = Mlp()
        alone, fast, x = copy.deepcopy(module), self.compiled(module), torch.randn(4, 8)
        with self.assertWarnsRegex(UserWarning, "a gradient is asked for"):
            fast(x).square().sum().backward()
        alone(x).square().sum().backward()
        for one, other in zip(module.parameters(), alone.parameters()):
            self.same(one.grad, other.grad)
        with torch.no_grad():
            self.same(fast(x), alone(x))
        self.assertEqual(sum(graph.calls for graph in self.graphs()), 1)

    def test_a_gradient_of_the_input_alone(self):
        module = Mlp().requires_grad_(False)
        fast, x = self.compiled(module), torch.randn(4, 8, requires_grad=True)
        fast(x).sum().backward()
        want = x.grad.clone()
        x.grad = None
        module(x).sum().backward()
        self.same(want, x.grad)

    def test_a_step_of_training_with_dropout(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8))
        alone, fast, x = copy.deepcopy(module), self.compiled(module), torch.randn(16, 8)
        optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (module, alone)]
        for step in range(2):
            for model, optimizer in zip((fast, alone), optimizers):
                torch.manual_seed(step)
                optimizer.zero_grad()
                model(x).square().sum().backward()
                optimizer.step()
        self.same(dict(module.state_dict()), dict(alone.state_dict()))

    @torch.no_grad()
    def test_random_numbers_are_eagers(self):
        module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8))
        fast, x = self.compiled(module), torch.randn(4, 8)
        for seed in (0, 1):
            torch.manual_seed(seed)
            got = fast(x)
            torch.manual_seed(seed)
            self.same(got, module(x))


class Fallback(Base):
    @torch.no_grad()
    def test_a_custom_operator_splits_the_graph(self):
        module = Custom()
        fast, x = self.compiled(module), torch.randn(4, 8)
        with no_warnings():
            for _ in range(2):
                self.same(fast(x), module(x))
        (graph,) = self.graphs()
        self.assertEqual([part.calls for part in graph.parts], [2, 2], graph.parts)
        self.assertIsNone(graph.reason)
        module.fc.weight.mul_(2)
        self.same(fast(x), module(x))

    @torch.no_grad()
    def test_parts_of_parts(self):
        """Where nothing stands out the graph is halved, and a half is halved again."""
        module = Mlp()
        real = nereid._optimize.plan.Plan.search

        def only_small(plan, options):
            if plan.task.count("torch.ops.") > 1:
                raise nereid._structure.Unsupported("too large, says the test")
            real(plan, options)

        nereid._optimize.plan.Plan.search = only_small
        try:
            fast, x = self.compiled(module, cache=False), torch.randn(4, 8)
            for _ in range(2):
                self.same(fast(x), module(x))
        finally:
            nereid._optimize.plan.Plan.search = real
        (graph,) = self.graphs()
        self.assertGreaterEqual(graph.calls, 2, graph.parts)
        module.down.weight.mul_(2)
        self.same(fast(x), module(x))

    @torch.no_grad()
    def test_a_fault_of_ours_does_not_break_the_model(self):
        module = Mlp()
        fast, x = self.compiled(module), torch.randn(4, 8)
        real, nereid._compile.graph.meta_of = nereid._compile.graph.meta_of, lambda tensor: 1 / 0
        try:
            with self.assertWarnsRegex(UserWarning, "a fault of Nereid: ZeroDivisionError"):
                self.same(fast(x), module(x))
        finally:
            nereid._compile.graph.meta_of = real

    @torch.no_grad()
    def test_a_model_that_cannot_be_lowered(self):
        module = lambda x: twice(twice(x))  # noqa: E731
        fast, x = self.compiled(module), torch.randn(4, 8)
        with self.assertWarnsRegex(UserWarning, "eager PyTorch runs graph.*nereid_test.twice"):
            self.same(fast(x), x * 4)
        with no_warnings():
            self.same(fast(x), x * 4)
        (graph,) = self.graphs()
        self.assertEqual((graph.calls, graph.fallback_calls), (0, 2))

    @torch.no_grad()
    def test_complex_and_sparse_values(self):
        for module, x in (
            (lambda x: torch.fft.fft(x).abs(), torch.randn(4, 8)),
            (lambda x: x.to_sparse() @ torch.eye(8), torch.eye(8)),
            (lambda x: torch.view_as_complex(x), torch.randn(4, 2)),
        ):
            torch._dynamo.reset()
            self.same(self.compiled(module)(x), module(x))

    @torch.no_grad()
    def test_values_that_are_read(self):
        module = lambda x: x[x > 0] * 2 if x.sum() > 0 else x - 1  # noqa: E731
        fast = self.compiled(module)
        for x in (torch.ones(4, 8), -torch.ones(4, 8)):
            self.same(fast(x), module(x))

    def test_inductor_runs_what_is_not_verified(self):
        module = Mlp()
        fast, x = self.compiled(module, fallback="inductor"), torch.randn(4, 8)
        with self.assertWarnsRegex(UserWarning, "Inductor runs graph"):
            self.same(fast(x), module(x))
        fast(x).sum().backward()
        self.assertIsNotNone(module.up.weight.grad)
        with torch.no_grad():
            self.same(fast(x), module(x))

    @torch.no_grad()
    def test_without_a_gpu_it_says_so_and_judges_nothing(self):
        module = Mlp()
        fast, x = self.compiled(module), torch.randn(4, 8)
        os.environ["TRITON_INTERPRET"] = "0"
        try:
            with self.assertWarnsRegex(UserWarning, "need a CUDA device"):
                self.same(fast(x), module(x))
        finally:
            os.environ["TRITON_INTERPRET"] = "1"
        self.assertEqual(self.graphs()[0].verdicts, [])

    @torch.no_grad()
    def test_a_program_that_is_missing(self):
        module = Mlp()
        fast, x = self.compiled(module, cache=False), torch.randn(4, 8)
        real, _program.command = _program.command, lambda: ("/nonexistent/nereid", dict(os.environ))
        try:
            with self.assertWarnsRegex(UserWarning, "a fault of Nereid.*No such file"):
                self.same(fast(x), module(x))
        finally:
            _program.command = real

    def test_what_the_caller_gets_wrong(self):
        x = torch.randn(4, 8)
        for options, says in (
            (dict(fallback="tvm"), "fallback.*tvm"), (dict(precision="tf16"), "tf16"),
            (dict(specialize=0), "specialize"),
            (dict(dynamic="batch"), "dynamic"), (dict(policy="strictest"), "policy"),
        ):  # fmt: skip
            torch._dynamo.reset()
            with self.subTest(says), self.assertRaisesRegex(Exception, says), torch.no_grad():
                self.compiled(lambda x: x + 1, cache=False, **options)(x)


class Background(Base):
    @torch.no_grad()
    def test_the_first_call_does_not_wait(self):
        module = Mlp()
        gate, real = threading.Event(), _compile.graph.CompiledGraph._judge

        def slow(graph, plan):
            gate.wait(60)
            real(graph, plan)

        _compile.graph.CompiledGraph._judge = slow
        try:
            fast, x = self.compiled(module, background=True), torch.randn(4, 8)
            with no_warnings():
                self.same(fast(x), module(x))
            (graph,) = self.graphs()
            self.assertEqual((graph.calls, graph.fallback_calls), (0, 1))
            self.assertFalse(graph.wait(0.01))
            self.assertEqual(graph.reason, "its kernels are being verified")
            gate.set()
            self.assertTrue(graph.wait(120))
            self.same(fast(x), module(x))
            self.assertEqual((graph.calls, graph.fallback_calls), (1, 1), graph)
        finally:
            _compile.graph.CompiledGraph._judge = real


class Cache(Base):
    @torch.no_grad()
    def test_kernels_are_kept_by_content(self):
        module, x = Mlp(), torch.randn(4, 8)
        searches, real = [], nereid._optimize.plan.Plan.search

        def counted(plan, options):
            searches.append(1)
            real(plan, options)

        nereid._optimize.plan.Plan.search = counted
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["NEREID_STORE"] = folder + "/store.db"
                for expected in (1, 1, 1):
                    torch._dynamo.reset()
                    _compile.cache._cached.clear()  # as in another process
                    self.same(self.compiled(module)(x), module(x))
                    self.assertEqual(len(searches), expected)
                self.compiled(lambda x: torch.softmax(module(x), -1))(x)
                self.assertEqual(len(searches), 2)  # another content
                for kept in (pathlib.Path(folder) / "compiled").iterdir():
                    kept.write_text(kept.read_text()[:-20])  # cut short
                torch._dynamo.reset()
                _compile.cache._cached.clear()
                self.same(self.compiled(module)(x), module(x))
                self.assertEqual(len(searches), 3)
        finally:
            nereid._optimize.plan.Plan.search = real
            os.environ["NEREID_STORE"] = _store.name + "/store.db"

    @torch.no_grad()
    def test_a_folder_that_cannot_be_written(self):
        module, x = Mlp(), torch.randn(3, 8)
        os.environ["NEREID_STORE"] = "/proc/nowhere/store.db"
        try:
            with self.assertWarnsRegex(UserWarning, "are not kept"):
                self.same(self.compiled(module)(x), module(x))
        finally:
            os.environ["NEREID_STORE"] = _store.name + "/store.db"

    def test_a_store_in_a_database_has_the_default_folder(self):
        changed = {"NEREID_STORE": "postgresql://me:secret@db/kernels", "XDG_DATA_HOME": "/data"}
        with unittest.mock.patch.dict(os.environ, changed):
            self.assertEqual(_compile.cache.cache_folder(), pathlib.Path("/data/nereid/compiled"))


class EntryPoint(unittest.TestCase):
    def test_the_wheel_names_the_backend(self):
        project = tomllib.loads((FOLDER.parents[1] / "packaging" / "pyproject.toml").read_text())["project"]
        module, _, name = project["entry-points"]["torch_dynamo_backends"]["nereid"].partition(":")
        self.assertEqual(module, "nereid")
        self.assertIs(getattr(nereid, name), nereid.compile_backend)

    def test_it_is_listed(self):
        self.assertIn("nereid", torch._dynamo.list_backends())


if __name__ == "__main__":
    unittest.main()
