"""Calls that native code does whole, from the check of arguments to the launches, under a CUDA driver that
keeps launches and computes on the host (tests/support/fake_cuda.cpp).

    tests/python/launches_test.py [PATH/TO/nereid]

No GPU is needed, and nothing is judged: the kernels are two sums, as steps that a recording would give.
"""

import copy
import ctypes
import gc
import os
import pathlib
import pickle
import sys
import threading
import types
import unittest
import unittest.mock
import weakref

os.environ["TRITON_INTERPRET"] = "1"
FOLDER = pathlib.Path(__file__).resolve().parent
BIN = FOLDER.parents[1] / "build/release/bin"
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    BIN = pathlib.Path(sys.argv.pop(1)).resolve().parent  # of the program
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]

import nereid  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from nereid import _native, _structure  # noqa: E402
from nereid._optimize import kernels, plan, prepared  # noqa: E402
from torch import nn  # noqa: E402

FAKE = str(BIN / "libfake_cuda.so")
fake = ctypes.CDLL(FAKE)
fake.fake_record.restype = ctypes.c_char_p
FIRST, SECOND, STREAM = 101, 102, 77
PARAMETERS = ["*fp32", "*fp32", "*fp32", "fp32", "i32", "i32"]


class Sums(nn.Module):
    """(x * 2 + a) * 3 + b; with a pair, both sums."""

    def __init__(self, pair=False):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8))
        self.pair = pair
        self.requires_grad_(False)

    def forward(self, x):
        first = x * 2 + self.a
        second = first * 3 + self.b
        return {"first": first, "both": [second, (first, 7)]} if self.pair else second


def planned(module, x):
    """The plan of Sums, as torch.export would give it."""
    held, inputs, outputs = plan.Plan(), [], []
    given = _structure.flatten({"x": x}, inputs)
    answer = _structure.flatten(module(x), outputs)
    computed = [("computed", i) for i in ((0, 1, 0) if module.pair else (0,))]
    held.take(
        types.SimpleNamespace(
            source="", inputs=given, outputs=answer, returned=computed, state=["a", "b"], written=[],
            computed=len(set(computed)), used=[True], copied=[False], leading=[], mutates_inputs=False,
            constants=[], state_names={"a": "a", "b": "b"},
        ),
        {"x": x},
    )  # fmt: skip
    held.source, held.reason = "", None
    return held


class Launcher:
    """Of Triton, as it prepares a launch for an NVIDIA GPU."""

    global_scratch_size = profile_scratch_size = 0
    launch_cooperative_grid, launch_pdl = False, False


Launcher.__module__ = "triton.backends.nvidia.driver"


class Driver:
    """Of Triton: the current stream and device."""

    stream = STREAM

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return Driver.stream


def kernel(function, shared=0):
    """(the kernel, what Triton compiled of it)"""
    signature = dict(zip(["out", "a", "b", "scale", "period", "count"], PARAMETERS))
    compiled = types.SimpleNamespace(
        src=types.SimpleNamespace(signature=signature),
        run=Launcher(),
        packed_metadata=(4, 1, shared),
        function=function,
    )
    return types.SimpleNamespace(pre_run_hooks=[]), compiled


class Written(kernels.Kernels):
    """In the written file's place: computes in PyTorch, and has steps as of a recording."""

    def __init__(self, original, graphed=False):
        self._module, self._renamed, self._single = original, [], not original.pair
        self.graphed, self._tries, self.runs, self.driver = graphed, prepared.MOST_TRIES, 0, Driver()
        self.kernels = [kernel(FIRST), kernel(SECOND, 4096)]
        self.more, self.not_verified = [], ZeroDivisionError

    def computed(self, x):
        first = x * 2 + self._module.a
        second = first * 3 + self._module.b
        return first, second

    def run(self, given):
        self.runs += 1
        first, second = self.computed(*given)
        return (second,) if self._single else (first, second)

    def direct(self, exported):
        return None

    def recorded(self, given):
        results, aten = self.run(given), torch.ops.aten
        x, second = given[0], results[-1]
        first = torch.empty(4, 8) if self._single else results[0]
        launches = [
            ("launch", *self.kernels[0], (1, 1, 1), [first, x, self._module.a, 2.0, 8, 32]),
            ("launch", *self.kernels[1], (2, 3, 1), [second, first, self._module.b, 3.0, 8, 32]),
        ]
        made = [("call", aten.empty.memory_format, (), {}, tensor) for tensor in (first, second)]
        return results, [made[0], launches[0], made[1], *self.more, launches[1]], self.driver


class Pool:
    """Memory that is given again once no tensor is on it, the last first, as torch's allocator of a GPU
    does."""

    def __init__(self):
        self.free = {}

    def place(self, kind, shape, strides, dtype):
        size, free = torch.empty_strided(shape, strides, dtype=dtype).untyped_storage().nbytes(), self.free

        def make():
            blocks = free.setdefault(size, [])
            block = blocks.pop() if blocks else numpy.empty(size + 64, numpy.uint8)
            at = -block.ctypes.data % 64
            array = block[at : at + size]
            weakref.finalize(array, blocks.append, block)
            return torch.from_numpy(array).view(dtype).as_strided(shape, strides)

        return "made", make, ()


@unittest.skipIf(_native.extension() is None, "no extension")
class Launches(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(4, 8)
        fake.fake_reset()
        sizes = (ctypes.c_int * 8)(8, 8, 8, 4, 4, 4, 8, 8)
        for function in (FIRST, SECOND):
            fake.fake_kernel(ctypes.c_uint64(function), 8, sizes, 1)
        patch = unittest.mock.patch.object(prepared, "DRIVER", FAKE)
        patch.start()
        self.addCleanup(patch.stop)
        # Triton's own driver is not looked for: the recorded one is the active one.
        from triton.runtime import driver as config

        held = vars(config).get("_active")
        self.addCleanup(lambda: vars(config).__setitem__("_active", held))
        Driver.stream = STREAM

    def made(self, pair=False, graphed=False):
        from triton.runtime import driver as config

        module = Sums(pair)
        fast = nereid.Optimized(module, planned(module, self.x), plan.Settings(1, "ieee", {}))
        written = fast.__dict__["_nereid_kernels"] = Written(module, graphed)
        vars(config)["_active"] = written.driver
        return fast, module, written

    def ready(self, **more):
        """After the call that is recorded."""
        fast, module, written = self.made(**more)
        for _ in range(2):
            self.assert_right(fast, module)
        self.assertIsNotNone(fast._nereid_native.run)
        self.assertEqual(written.runs, 2)
        self.lines()
        return fast, module, written

    def assert_right(self, fast, module, x=None):
        x = self.x if x is None else x
        got, want = fast(x), module(x)
        torch.testing.assert_close(got, want)
        return got

    def lines(self):
        return [line.split() for line in fake.fake_record().decode().splitlines()]

    def counts(self, fast):
        return fast._nereid_native.runner.counts

    # -- launches -------------------------------------------------------------------------------------------

    def test_the_driver_gets_what_was_recorded(self):
        fast, module, written = self.ready()
        got = fast(self.x)
        first, second = self.lines()
        scratch = first[11]
        numbers = lambda *values: [str(value) for value in values]  # noqa: E731
        self.assertEqual(first[:11], ["launch", *numbers(FIRST, STREAM, 1, 1, 1, 128, 1, 1, 0, 0)])
        self.assertEqual(second[:11], ["launch", *numbers(SECOND, STREAM, 2, 3, 1, 128, 1, 1, 4096, 0)])
        two, three = (int.from_bytes(bytes(ctypes.c_float(n)), "little") for n in (2, 3))
        self.assertEqual(first[12:], numbers(self.x.data_ptr(), module.a.data_ptr(), two, 8, 32, 0, 0))
        self.assertEqual(second[11:], [str(got.data_ptr()), scratch,
                                       *numbers(module.b.data_ptr(), three, 8, 32, 0, 0)])  # fmt: skip
        torch.testing.assert_close(got, module(self.x))
        self.assertEqual((written.runs, self.counts(fast)), (2, (1, 0, 0)))
        self.assertTrue(fast._nereid_native.runner.direct)

    def test_every_call_has_its_own_memory_and_addresses(self):
        fast, module, written = self.ready()
        inputs = [torch.randn(4, 8) for _ in range(20)]
        answers = [fast(x) for x in inputs]
        for x, answer in zip(inputs, answers):
            torch.testing.assert_close(answer, module(x))
        self.assertEqual(len({answer.data_ptr() for answer in answers}), 20)
        module.a.data = torch.randn(8)
        self.assert_right(fast, module)
        module.b = nn.Parameter(torch.randn(8), requires_grad=False)
        self.assert_right(fast, module)
        module.load_state_dict({"a": torch.ones(8), "b": torch.zeros(8)})
        self.assert_right(fast, module)
        with torch.no_grad():
            module.a.add_(1)
        self.assert_right(fast, module)
        self.assertGreaterEqual(self.counts(fast)[0], 22)

    def test_structures(self):
        for graphed in (False, True):
            fast, module, _ = self.ready(pair=True, graphed=graphed)
            for _ in range(4):
                got = self.assert_right(fast, module)
            self.assertIs(type(got["both"]), list)
            self.assertEqual(list(got), ["first", "both"])
            self.assertEqual(got["both"][1][1], 7)
            self.assertGreater(sum(self.counts(fast)[:2]), 3)

    def test_the_current_stream_is_taken(self):
        fast, module, _ = self.ready()
        for Driver.stream in (5, 9):
            self.assert_right(fast, module)
            self.assertEqual({line[2] for line in self.lines()}, {str(Driver.stream)})

    def test_methods_of_torch_instead_of_its_c_functions(self):
        with unittest.mock.patch.object(prepared.Path, "parent", pathlib.Path("/nowhere")):
            fast, module, _ = self.ready()
        self.assertFalse(fast._nereid_native.runner.direct)
        self.assert_right(fast, module, torch.randn(4, 8))
        self.assertEqual(self.counts(fast)[0], 1)

    # -- what is left to Python -----------------------------------------------------------------------------

    def test_what_is_not_such_a_call(self):
        fast, module, written = self.ready()
        unaligned = torch.randn(33)[1:].view(4, 8)
        self.assert_right(fast, module, unaligned)
        self.assertEqual((written.runs, self.lines()), (3, []))
        others = [torch.randn(5, 8), torch.randn(8, 4).t(), self.x.double(), self.x.as_subclass(Tagged),
                  self.x.clone().requires_grad_()]  # fmt: skip
        for x in others:
            torch.testing.assert_close(fast(x), module(x))
        meta = fast(self.x.to("meta")) if module(self.x) is None else None
        self.assertIsNone(meta)
        self.assertEqual(torch.vmap(fast)(torch.randn(2, 4, 8)).shape, (2, 4, 8))
        with torch.inference_mode():
            inferred = self.assert_right(fast, module)
        self.assertTrue(inferred.is_inference())
        module.register_forward_hook(lambda *args: None)
        torch.testing.assert_close(fast(self.x), module(self.x))

    def test_what_else_concerns_a_call_goes_by_nn_module(self):
        calls, plain = [], nn.Module.__call__

        def counted(module, *args):
            calls.append(module)
            return plain(module, *args)

        def nothing(*args):
            return None

        changes = {
            "hook": lambda fast: fast.register_forward_hook(nothing),
            "hook before": lambda fast: fast.register_forward_pre_hook(nothing),
            "hook backward": lambda fast: fast.register_full_backward_hook(nothing),
            "hook before backward": lambda fast: fast.register_full_backward_pre_hook(nothing),
            "compiled": lambda fast: setattr(fast, "_compiled_call_impl", fast._call_impl),
            "hook of all": lambda fast: nn.modules.module.register_module_forward_hook(nothing),
        }
        for name, change in changes.items():
            with self.subTest(name):
                fast, module, _ = self.ready()
                with unittest.mock.patch.object(nn.Module, "__call__", counted):
                    fast(self.x)
                    self.assertEqual(calls, [])
                    handle = change(fast)
                    got = fast(self.x)
                self.assertEqual(calls, [fast])
                calls.clear()
                if handle is not None:
                    handle.remove()
                torch.testing.assert_close(got, module(self.x))
        fast, _, _ = self.ready()
        fast.forward = lambda x: 5
        self.assertEqual(fast(self.x), 5)

    def test_compilers_see_the_original(self):
        fast, module, _ = self.ready()
        for name in ("is_compiling", "is_dynamo_compiling"):
            with unittest.mock.patch.object(torch.compiler, "is_compiling", lambda: True):
                with unittest.mock.patch.object(torch.compiler, name, lambda: True):
                    torch.testing.assert_close(fast(self.x), module(self.x))
        self.assertEqual(self.lines(), [])

    def test_triton_s_hooks_and_drivers(self):
        from triton import knobs
        from triton.runtime import driver as config
        from triton.runtime.jit import JITFunction

        fast, module, written = self.ready()
        changes = [
            unittest.mock.patch.object(knobs.runtime, "debug", True),
            unittest.mock.patch.object(knobs.runtime.launch_enter_hook, "calls", [print]),
            unittest.mock.patch.object(JITFunction, "run", print),
            unittest.mock.patch.dict(vars(config), {"_active": None}),
        ]
        knobs.runtime.launch_enter_hook.add(print)
        self.assert_right(fast, module)
        knobs.runtime.launch_enter_hook.remove(print)
        written.kernels[0][0].pre_run_hooks.append(print)
        self.assert_right(fast, module)
        written.kernels[0][0].pre_run_hooks.clear()
        self.assertEqual((written.runs, self.lines()), (4, []))
        for number, change in enumerate(changes):
            if number == 1:
                continue  # the list is the one that was recorded
            with change:
                self.assert_right(fast, module)
            self.assertEqual((written.runs, self.lines()), (5 + number - (number > 1), []))
        self.assert_right(fast, module)
        self.assertEqual(len(self.lines()), 2)

    def test_the_option_for_debugging(self):
        with unittest.mock.patch.dict(os.environ, NEREID_NATIVE_CALLS="0"):
            fast, module, written = self.made()
            for _ in range(4):
                self.assert_right(fast, module)
        self.assertEqual((written.runs, fast._nereid_native.run, self.lines()), (4, None, []))

    def test_steps_that_cannot_be_prepared(self):
        def refused(change):
            fast, module, written = self.made()
            change(written)
            for _ in range(4):
                self.assert_right(fast, module)
            self.assertEqual((written.runs, fast._nereid_native.run), (4, None))

        aten = torch.ops.aten
        refused(lambda w: w.more.append(("call", aten.add.Tensor, (), {}, torch.ones(2))))
        refused(lambda w: w.more.append(("other", "a reason")))
        refused(lambda w: setattr(w.kernels[0][1].run, "global_scratch_size", 8))
        refused(lambda w: setattr(w.kernels[1][1].run, "launch_pdl", True))
        refused(lambda w: setattr(w.kernels[0][1], "packed_metadata", (4, 2, 0)))
        refused(lambda w: setattr(w, "recorded", lambda given: (w.run(given), None, None)))

    def test_a_plan_that_computes_something_else_is_not_taken(self):
        """A launch that was not recorded, though its results of earlier calls lie in the same memory."""
        for lost in (0, 1):
            fast, module, written = self.made()
            plain = written.recorded

            def without(given, plain=plain, lost=lost):
                results, steps, driver = plain(given)
                launches = [step for step in steps if step[0] == "launch"]
                return results, [step for step in steps if step is not launches[lost]], driver

            written.recorded = without
            for _ in range(4):
                self.assert_right(fast, module)
            self.assertIsNone(fast._nereid_native.run)

    # -- errors of the driver -------------------------------------------------------------------------------

    def test_errors_of_a_launch(self):
        for code, before in ((2, 0), (400, 0), (201, 0), (719, 1)):
            with self.subTest(code):
                fast, module, written = self.ready()
                fake.fake_fail(b"cuLaunchKernelEx", code, before)
                self.assert_right(fast, module)
                self.assertEqual(written.runs, 3)
                fake.fake_fail(b"cuLaunchKernelEx", 0, 0)
                self.assert_right(fast, module)
                self.assertEqual(written.runs, 3)

    def test_an_error_s_text(self):
        fast, _, _ = self.ready()
        fake.fake_fail(b"cuLaunchKernelEx", 2, 0)
        with self.assertRaisesRegex(
            RuntimeError, "CUDA error 2 .CUDA_ERROR_OUT_OF_MEMORY. at a kernel launch"
        ):
            fast._nereid_native.run((self.x,), {})

    def test_errors_of_memory(self):
        fast, module, written = self.made()
        refusals = []

        def scarce(kind, *memory):
            made = memory_of(kind, *memory)

            def make(*args):
                if refusals:
                    raise refusals.pop()
                return made[1](*args)

            return "made", make, made[2]

        memory_of = prepared.memory_of
        with unittest.mock.patch.object(prepared, "memory_of", scarce):
            for _ in range(3):
                self.assert_right(fast, module)
        self.assertEqual(self.counts(fast)[0], 1)
        refusals.extend([torch.OutOfMemoryError("no memory")] * 2)
        self.assert_right(fast, module)
        self.assertEqual(written.runs, 3)
        refusals.append(KeyboardInterrupt())
        with self.assertRaises(KeyboardInterrupt):
            fast(self.x)

    def test_a_library_that_is_no_driver(self):
        for library in ("/nowhere/libcuda.so.1", "libm.so.6"):
            with unittest.mock.patch.object(prepared, "DRIVER", library):
                fast, module, written = self.made()
                for _ in range(3):
                    self.assert_right(fast, module)
                self.assertEqual((written.runs, fast._nereid_native.run), (3, None))

    # -- graphs ---------------------------------------------------------------------------------------------

    def calls(self, fast, module, inputs, times):
        """Calls whose answers are dropped, so that addresses come again."""
        for _ in range(times):
            for x in inputs:
                self.assert_right(fast, module, x)

    def graphed(self):
        patch = unittest.mock.patch.object(prepared, "memory_of", Pool().place)
        patch.start()
        self.addCleanup(patch.stop)
        return self.ready(graphed=True)

    def test_a_graph_for_each_set_of_addresses(self):
        fast, module, written = self.graphed()
        inputs = [torch.randn(4, 8) for _ in range(3)]
        self.calls(fast, module, inputs, 8)
        launched, replayed, graphs = self.counts(fast)
        self.assertEqual((launched + replayed, written.runs), (24, 2))
        self.assertGreaterEqual(replayed, 12)
        self.assertGreaterEqual(graphs, 3)
        lines = self.lines()
        nodes = [line for line in lines if line[0] == "node"]
        plain = [line for line in lines if line[0] == "launch"]
        self.assertEqual(len(nodes), 2 * replayed)
        same = {tuple(line[1:11]) for line in nodes}
        self.assertEqual(same, {tuple(line[1:11]) for line in plain})
        module.a.data = torch.randn(8)  # other addresses: no graph of the old ones
        self.calls(fast, module, inputs, 8)
        kept = [(x, fast(x)) for x in inputs * 4]
        for x, answer in kept:  # no later call has written to them
            torch.testing.assert_close(answer, module(x))

    def test_an_answer_that_is_kept_is_not_overwritten(self):
        fast, module, _ = self.graphed()
        inputs = [torch.randn(4, 8) for _ in range(2)]
        self.calls(fast, module, inputs, 6)
        kept = [fast(inputs[0]) for _ in range(5)]
        views = [answer[1:] for answer in kept]
        want = [view.clone() for view in views]
        del kept
        self.calls(fast, module, inputs, 6)
        for view, one in zip(views, want):
            torch.testing.assert_close(view, one)

    def test_the_least_used_graphs_go(self):
        fast, module, _ = self.graphed()
        before = fake.fake_executables()
        for _ in range(12):
            x = torch.randn(4, 8)
            self.calls(fast, module, [x], 4)
        self.assertEqual(self.counts(fast)[2], prepared.MOST_GRAPHS)
        rest = torch.randn(4, 8)
        self.calls(fast, module, [rest], 200)
        self.assertEqual(self.counts(fast)[2], prepared.MOST_GRAPHS)
        self.assertGreater(self.counts(fast)[1], 100)
        self.assertEqual(fake.fake_executables() - before, prepared.MOST_GRAPHS)
        del fast, module
        gc.collect()
        self.assertEqual(fake.fake_executables(), before)

    def test_while_a_stream_captures_there_are_launches(self):
        fast, module, _ = self.graphed()
        self.calls(fast, module, [self.x], 6)
        before = self.counts(fast)
        fake.fake_capturing(1)
        self.calls(fast, module, [self.x], 3)
        self.assertEqual(self.counts(fast), (before[0] + 3, *before[1:]))

    def test_errors_of_graphs(self):
        names = (b"cuGraphCreate", b"cuGraphAddKernelNode", b"cuGraphInstantiate", b"cuGraphLaunch")
        for name in names:
            with self.subTest(name):
                fast, module, written = self.graphed()
                before = fake.fake_executables()
                fake.fake_fail(name, 2, 1)
                self.calls(fast, module, [torch.randn(4, 8) for _ in range(4)], 12)
                self.assertEqual(written.runs, 2)
                self.assertEqual(sum(self.counts(fast)[:2]), 48)
                del fast, module
                gc.collect()
                self.assertLessEqual(fake.fake_executables(), before)
                fake.fake_fail(name, 0, 0)

    def test_cooperative_launches(self):
        for graphed in (False, True):
            fast, module, written = self.made(graphed=graphed)
            written.kernels[1][1].run.launch_cooperative_grid = True
            self.calls(fast, module, [self.x], 8)
            lines = [line for line in self.lines() if line[0] in ("launch", "node")]
            self.assertEqual({(line[1], line[10]) for line in lines},
                             {(str(FIRST), "0"), (str(SECOND), "1")})  # fmt: skip

    # -- copies, threads, processes -------------------------------------------------------------------------

    def test_copies_and_pickles_have_no_plan(self):
        fast, module, _ = self.ready()
        for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
            self.assertIsNone(other._nereid_native.run)
        moved = copy.deepcopy(fast).double()
        torch.testing.assert_close(moved(self.x.double()), copy.deepcopy(module).double()(self.x.double()))
        self.assert_right(fast, module)
        self.assertEqual(len(self.lines()), 2)

    def test_a_failure_ends_it(self):
        fast, module, _ = self.ready()
        fast._nereid_fails("it failed")
        self.assertIsNone(fast._nereid_native.run)
        self.assert_right(fast, module)
        self.assertEqual(self.lines(), [])

    def test_no_tensor_of_a_call_is_kept(self):
        for graphed in (False, True):
            fast, module, _ = self.made(graphed=graphed)
            x, old = torch.randn(4, 8), weakref.ref(module.a)
            for _ in range(6):
                fast(x)
            self.assertGreater(sum(self.counts(fast)[:2]), 2)
            gone = weakref.ref(x)
            module.a = nn.Parameter(torch.randn(8), requires_grad=False)
            del x
            self.assert_right(fast, module)
            gc.collect()
            self.assertIsNone(gone())
            self.assertIsNone(old())

    def test_it_is_collected(self):
        fast, module, written = self.ready(pair=True, graphed=True)
        gone = weakref.ref(fast), weakref.ref(module), weakref.ref(fast._nereid_native)
        del fast, module, written
        gc.collect()
        self.assertEqual([ref() for ref in gone], [None] * 3)

    def test_threads(self):
        for graphed in (False, True):
            fast, module, _ = self.ready(graphed=graphed)
            inputs, wrong = [torch.randn(4, 8) for _ in range(4)], []
            wanted = [module(x) for x in inputs]

            def calls(fast=fast, inputs=inputs, wanted=wanted, wrong=wrong):
                for _ in range(60):
                    for x, want in zip(inputs, wanted):
                        if not torch.allclose(fast(x), want, rtol=1e-5, atol=1e-5):
                            wrong.append(x)

            threads = [threading.Thread(target=calls) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertGreater(sum(self.counts(fast)[:2]), 900)
            self.assertGreaterEqual(fake.fake_executables(), 0)

    def test_a_forked_process_does_not_call_the_driver(self):
        fast, module, written = self.graphed()
        self.calls(fast, module, [self.x], 6)
        self.lines()
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            torch.set_num_threads(1)
            right = torch.allclose(fast(self.x), self.x * 6 + module.a * 3 + module.b, atol=1e-5)
            runs = written.runs
            fast._nereid_native.take(None)
            del fast
            os.write(write, f"{right} {runs} {len(self.lines())}".encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 100), b"True 3 0")

    # -- descriptions ---------------------------------------------------------------------------------------

    def test_descriptions_that_are_not_right_are_refused(self):
        native = _native.extension()
        taken = []
        plan_of = prepared.plan_of
        with unittest.mock.patch.object(
            prepared, "plan_of", lambda text, *rest: taken.append(text) or plan_of(text, *rest)
        ):
            self.ready()
        right = taken[0]
        native.PlanRunner(right)
        launch = right["launches"][0]
        for change in (
            {"tensors": (("argument", -1),)}, {"tensors": (("state", 3, "a"),)}, {"tensors": 3},
            {"tensors": (*reversed(right["tensors"]),)}, {"slots": (99,)}, {"slots": ("a",)},
            {"same": ((0, 99),)}, {"same": (3,)}, {"launches": ((*launch[:5], ((0, 99),)),)},
            {"launches": ((*launch[:5], 3),)}, {"launches": ((*launch[:1], (1, 1), *launch[2:]),)},
            {"answer": ("tensor", 99)}, {"answer": ("tuple", 3)}, {"answer": 5},
            {"answer": ("dict", (("constant", 1),), ())}, {"answer": ("view", 0, (1, 2))}, {"functions": ()},
            {"functions": (*right["functions"][:2], None, *right["functions"][3:])},
        ):  # fmt: skip
            with self.subTest(change), self.assertRaises((ValueError, TypeError, SystemError)):
                native.PlanRunner({**right, **change})
        for missing in ("tensors", "slots", "same", "launches", "answer", "samples", "sample", "functions"):
            with self.subTest(missing), self.assertRaises((ValueError, TypeError, KeyError)):
                native.PlanRunner({name: value for name, value in right.items() if name != missing})
        runner = native.PlanRunner(right)
        self.assertIs(runner.run((self.x,), {}), prepared.AGAIN)  # without a check
        for wrong in (((self.x,),), ([self.x], {}), (self.x, {})):
            with self.assertRaises(TypeError):
                runner.run(*wrong)
        with self.assertRaises(TypeError):
            runner.follow(3)


class Tagged(torch.Tensor):
    pass


if __name__ == "__main__":
    unittest.main()
