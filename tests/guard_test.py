"""Files that `nereid lower` writes, loaded in plain Python on a CPU: where their kernels do not hold they
raise, or with --fallback do what the reference does; and what the check costs.

    python tests/guard_test.py NEREID

Launches do nothing here (the guard is above them), but for one test that runs kernels in Triton's
interpreter.
"""

import copy
import importlib.util
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import timeit
import unittest
import warnings

os.environ["TRITON_INTERPRET"] = "1"

import preloaded  # noqa: E402
import torch  # noqa: E402
from triton.runtime.interpreter import InterpretedFunction  # noqa: E402

NEREID = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/nereid").resolve())
MOST_MICROSECONDS = 2.0
LAUNCH = InterpretedFunction.__getitem__

HEAD = """import dataclasses
import types
from collections import namedtuple
import torch
from torch import nn
import torch.nn.functional as F
"""
# name: (body of the class, inputs, constructor's arguments, what stands before it)
MODULES = {
    "linear": ("def __init__(self, n=24, m=40):\n super().__init__()\n self.fc = nn.Linear(n, m)\n"
               "def forward(self, x):\n return F.gelu(self.fc(x))", "torch.randn(32, 24)", "24, 40", ""),
    "batch_mean": ("def forward(self, x):\n return x.exp().mean(0)", "torch.randn(32, 24)", "", ""),
    "softmax": ("def forward(self, x, dim=-1, scale=2.0):\n return torch.softmax(x * scale, dim)",
        "torch.randn(32, 24)", "", ""),
    "dropout": ("def __init__(self, p):\n super().__init__()\n self.fc = nn.Linear(24, 24)\n"
                " self.drop = nn.Dropout(p)\n self.eval()\ndef forward(self, x):\n"
                " return self.drop(torch.relu(self.fc(x)))", "torch.randn(32, 24)", "0.5", ""),
    "batch_norm": ("def __init__(self, c):\n super().__init__()\n self.conv = nn.Conv2d(3, c, 3)\n"
                   " self.bn = nn.BatchNorm2d(c)\ndef forward(self, x):\n"
                   " return torch.relu(self.bn(self.conv(x)))", "torch.randn(4, 3, 9, 9)", "8", ""),
    "half": ("def __init__(self, n):\n super().__init__()\n self.norm = nn.LayerNorm(n, "
             "dtype=torch.float16)\n"
             "def forward(self, x):\n return self.norm(x) + 1", "torch.randn(32, 24).half()", "24", ""),
    "dictionary": ("def forward(self, x, y):\n return {'sum': x + y, 'all': (x * y).sum()}",
        "torch.randn(32, 24), torch.randn(24)", "", ""),
    "configured": ("def __init__(self, config, act):\n super().__init__()\n"
                   " self.fc, self.config, self.act = nn.Linear(config.n, config.twice, bias=config.bias), "
                   "config, act\ndef forward(self, x):\n y = self.act(self.fc(x))\n"
                   " return Output(logits=y, pair=Pair(y.amin(-1), y.amax(-1)))",
                   "torch.randn(32, 24)", "Config(24), F.silu",
                   "@dataclasses.dataclass\nclass Config:\n    n: int\n    bias: bool = False\n\n"
                   "    @property\n    def twice(self):\n        return 2 * self.n\n\n\n"
                   "Pair = namedtuple('Pair', 'low high')\n\n\n@dataclasses.dataclass\nclass Output:\n"
                   "    logits: torch.Tensor\n    pair: object = None\n\n\n"),
    "embedding": ("def __init__(self, n, d):\n super().__init__()\n self.table = nn.Embedding(n, d)\n"
                  "def forward(self, i, mask):\n"
                  " return self.table(i).masked_fill(mask[..., None], 0.0).sum(1)",
                  "torch.randint(0, 50, (8, 12)), torch.rand(8, 12) > 0.5", "50, 16", ""),
    "attention": ("def __init__(self, heads):\n super().__init__()\n self.heads = heads\n"
                  "def forward(self, q, k, v, causal=False):\n"
                  " return F.scaled_dot_product_attention(q, k, v, is_causal=causal)",
                  "torch.randn(2, 4, 16, 16), torch.randn(2, 4, 16, 16), torch.randn(2, 4, 16, 16)", "4", ""),
    "nested": ("def forward(self, xs, options):\n return xs[0] * options['gain'] + xs[1] @ options['w']",
        "[torch.randn(32, 24), torch.randn(32, 16)], {'gain': 1.5, 'w': torch.randn(16, 24)}", "", ""),
    "strided": ("def forward(self, x):\n return x.sum(1) + 1", "torch.randn(24, 32).t()", "", ""),
    "buffers": ("def __init__(self, n, eps=1e-5):\n super().__init__()\n"
                " self.register_buffer('shift', torch.randn(n))\n"
                " self.register_buffer('steps', torch.arange(n), persistent=False)\n self.eps = eps\n"
                "def forward(self, x):\n return (x - self.shift) / (x.abs().amax(-1, keepdim=True) + "
                "self.eps) * self.steps", "torch.randn(32, 24)", "24", ""),
    "deep": ("def __init__(self, n):\n super().__init__()\n"
             " self.net = nn.Sequential(nn.Linear(n, n), nn.ReLU(), nn.Linear(n, n), nn.ReLU(), nn.Linear(n, "
             "n), nn.LayerNorm(n))\ndef forward(self, x):\n return self.net(x)", "torch.randn(32, 24)", "24",
             ""),
}  # fmt: skip


def source_of(name):
    body, inputs, given, before = MODULES[name]
    body = "\n".join(
        "    " + line.replace("\n ", "\n    ") for line in body.replace("\n ", "\n    ").split("\n")
    )
    return (
        f"{HEAD}\n\n{before}class Model(nn.Module):\n{body}\n\n\ndef get_inputs():\n    return"
        f" [{inputs}]\n\n\ndef get_init_inputs():\n    return [{given}]\n"
    )


def load(path):
    name = "file_" + "_".join(path.parts[-2:]).removesuffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    items = (
        tree
        if isinstance(tree, (list, tuple))
        else (
            tree.values()
            if isinstance(tree, dict)
            else vars(tree).values()
            if hasattr(tree, "__dict__")
            else ()
        )
    )
    return [tensor for item in items for tensor in flat(item)]


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        for name in MODULES:
            (folder / f"{name}.py").write_text(source_of(name))
        files = [str(folder / f"{name}.py") for name in MODULES]
        for kind, options in (("strict", []), ("fallback", ["--fallback"])):
            lowered = subprocess.run(
                [NEREID, "lower", *files, "-o", str(folder / kind), *options], capture_output=True, text=True
            )
            assert lowered.returncode == 0, lowered.stderr
        cls.folder = folder
        cls.references = {name: load(folder / f"{name}.py") for name in MODULES}
        cls.strict = {name: load(folder / "strict" / f"{name}.py") for name in MODULES}
        cls.fallback = {name: load(folder / "fallback" / f"{name}.py") for name in MODULES}
        InterpretedFunction.__getitem__ = lambda self, grid: lambda *args, **kwargs: None

    @classmethod
    def tearDownClass(cls):
        InterpretedFunction.__getitem__ = LAUNCH
        cls.temporary.cleanup()

    def setUp(self):
        self.no_grad = torch.no_grad()
        self.no_grad.__enter__()

    def tearDown(self):
        self.no_grad.__exit__(None, None, None)

    def made(self, name, kind="strict"):
        """A module of the file, and arguments that it was written for."""
        given = self.references[name].get_init_inputs()
        return getattr(self, kind)[name].ModelNew(*given), self.references[name].get_inputs()

    def refused(self, call, *words, file):
        """The call raises the file's NotVerified, which names what was expected and what came."""
        with self.assertRaises(file.NotVerified) as raised:
            call()
        for word in ("expected", "got", *words):
            self.assertIn(word, str(raised.exception))

    def test_what_was_traced_passes_every_time(self):
        for name in MODULES:
            model, inputs = self.made(name)
            for _ in range(3):
                model(*inputs)
            model(*self.references[name].get_inputs())
            names = list(inspect.signature(model.forward).parameters)
            model(**dict(zip(names, inputs)))
            with torch.inference_mode():
                model(*inputs)
            copy.deepcopy(model)(*inputs)
            model.load_state_dict(model.state_dict())
            model(*inputs)

    def test_other_tensors(self):
        changes = {
            "twice the batch": lambda x: torch.cat([x, x]),
            "half the batch": lambda x: x[: x.shape[0] // 2].contiguous(),
            "one row more": lambda x: torch.cat([x, x[:1]]),
            "fewer features": lambda x: x[..., :-1].contiguous(),
            "another dtype": lambda x: x.double() if x.is_floating_point() else x.int(),
            "other strides": lambda x: torch.empty_strided(x.shape, [2 * d for d in x.stride()],
                dtype=x.dtype).copy_(x),
            "transposed": lambda x: x.transpose(0, -1).contiguous().transpose(0,
                -1) if x.dim() > 1 and min(x.shape) > 1 and x.is_contiguous() else x[None],
            "no dimension": lambda x: x.reshape(-1)[0], "not a tensor": lambda x: x.tolist(),
            "nothing": lambda x: None,
        }  # fmt: skip
        for name, file in self.strict.items():
            model, inputs = self.made(name)
            model(*inputs)  # the second check is the fast one
            for what, change in changes.items():
                with self.subTest(name, change=what):
                    others = list(inputs)
                    if name == "nested":
                        others[0] = [change(inputs[0][0]), inputs[0][1]]
                    else:
                        others[0] = change(inputs[0])
                    self.refused(lambda: model(*others), file=file)
            model(*inputs)

    def test_a_batch_of_another_size_says_which(self):
        model, (x,) = self.made("linear")
        self.refused(
            lambda: model(torch.randn(64, 24)),
            "(32, 24)",
            "(64, 24)",
            "argument x",
            file=self.strict["linear"],
        )

    def test_scalars_and_keywords(self):
        model, (x,) = self.made("softmax")
        file = self.strict["softmax"]
        for call in (
            lambda: model(x, scale=3),
            lambda: model(x, -1, 3.0),
            lambda: model(x, dim=0),
            lambda: model(x=x, scale=1.0),
            lambda: model(x, scale=torch.tensor(2.0)),
        ):
            self.refused(call, file=file)
        for _ in range(2):
            model(x, scale=2.0), model(x, -1, 2.0), model(x=x, dim=-1)
        self.refused(lambda: model(x, -1, 3.0), "argument scale", "2.0", "3.0", file=file)
        with self.assertRaises(TypeError):
            model(x, other=1)
        model, inputs = self.made("attention")
        self.refused(lambda: model(*inputs, causal=True), "causal", file=self.strict["attention"])
        model, (xs, options) = self.made("nested")
        self.refused(
            lambda: model(xs, {**options, "gain": 2.0}),
            "argument options['gain']",
            file=self.strict["nested"],
        )
        self.refused(lambda: model(xs, {"w": options["w"]}), file=self.strict["nested"])
        self.refused(lambda: model(xs[:1], options), file=self.strict["nested"])

    def test_a_keyword_whose_name_the_file_has_lost(self):
        file = self.strict["softmax"]
        x = torch.randn(32, 24)
        verified = {
            "inputs": [file._Tensor("float32", (32, 24), (24, 1))],
            "constructor": [],
            "state": {},
            "modes": False,
        }

        def class_of(fallback):
            class Unnamed(torch.nn.Module):
                def forward(self, *inputs):
                    return inputs[0]

            return file._guard(Unnamed, verified, fallback)

        self.refused(lambda: class_of(None)()(x, scale=3), "scale", file=file)
        reference = self.references["softmax"].Model
        model = class_of(lambda: reference)()
        self.assertTrue(torch.equal(model(x), x))
        self.assertTrue(torch.equal(model(x, scale=3), reference()(x, scale=3)))
        with self.assertRaises(TypeError):
            model(x, other=1)

    def test_autocast(self):
        model, (x,) = self.made("linear")
        model(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.refused(lambda: model(x), "autocast", file=self.strict["linear"])
        model(x)

    def test_constructors(self):
        for name, given in {
            "linear": (24, 41),
            "dropout": (0.1,),
            "batch_norm": (16,),
            "half": (16,),
            "buffers": (24, 1e-3),
            "attention": (8,),
            "embedding": (51, 16),
        }.items():
            self.refused(lambda: self.strict[name].ModelNew(*given), "constructor", file=self.strict[name])
        file = self.strict["configured"]
        config, act = self.references["configured"].get_init_inputs()
        file.ModelNew(file.Config(24), act), file.ModelNew(config=config, act=act)
        self.refused(lambda: file.ModelNew(file.Config(24, True), act), "config.bias", file=file)
        self.refused(lambda: file.ModelNew(config, torch.nn.functional.gelu), "argument act", file=file)
        self.strict["linear"].ModelNew(), self.strict["linear"].ModelNew(m=40)
        self.refused(
            lambda: self.strict["linear"].ModelNew(m=41), "argument m", "40", "41", file=self.strict["linear"]
        )

    def test_modes(self):
        model, inputs = self.made("batch_norm")
        model(*inputs)
        self.refused(
            lambda: model.eval()(*inputs), "training=True", "training=False", file=self.strict["batch_norm"]
        )
        model.train()(*inputs)
        model.bn.eval()
        self.refused(lambda: model(*inputs), "module bn", file=self.strict["batch_norm"])
        model, inputs = self.made("dropout")
        model(*inputs)
        self.refused(lambda: model.train()(*inputs), "training=False", file=self.strict["dropout"])
        for name in ("linear", "deep", "half", "configured", "buffers"):  # where it makes no difference
            model, inputs = self.made(name)
            model.eval()(*inputs), model.train()(*inputs)

    def test_parameters(self):
        changes = {
            "half()": lambda m: m.half(), "double()": lambda m: m.double(),
            "bfloat16()": lambda m: m.to(torch.bfloat16),
            "a submodule's": lambda m: m.net[2].half(), "another layer": lambda m: m.net.__setitem__(2,
                torch.nn.Linear(24, 32)),
            "transposed data": lambda m: setattr(m.net[0].weight, "data", m.net[0].weight.data.t()),
            "another parameter": lambda m: setattr(m.net[0], "bias", torch.nn.Parameter(torch.zeros(25))),
            "no parameter": lambda m: setattr(m.net[0], "bias", None),
        }  # fmt: skip
        for what, change in changes.items():
            with self.subTest(what):
                model, inputs = self.made("deep")
                model(*inputs)
                change(model)
                self.refused(lambda: model(*inputs), "net.", file=self.strict["deep"])
        model, inputs = self.made("half")
        self.refused(lambda: model.float()(*inputs), "float16", "float32", file=self.strict["half"])
        model.half()(*inputs)
        model, inputs = self.made("batch_norm")
        self.refused(
            lambda: model.to(memory_format=torch.channels_last)(*inputs),
            "conv.weight",
            file=self.strict["batch_norm"],
        )

    def test_gradients(self):
        for name, file in self.strict.items():
            model, inputs = self.made(name)
            model(*inputs)
            model.requires_grad_(False)
            floating = [t for t in flat(inputs) if t.is_floating_point()]
            with torch.enable_grad():
                model(*inputs)
                model(*inputs)
                if floating:
                    floating[0].requires_grad_()
                    self.refused(lambda: model(*inputs), "gradient", file=file)
            model(*inputs)
            if any(True for _ in model.parameters()):
                model.requires_grad_(True)
                with torch.enable_grad():
                    self.refused(lambda: model(*self.references[name].get_inputs()), "gradient", file=file)

    def test_a_lazily_negated_tensor(self):
        model, (x,) = self.made("linear")
        model(x)
        self.refused(lambda: model(torch._neg_view(x)), file=self.strict["linear"])

    def test_a_module_that_is_stored_and_loaded_is_guarded(self):
        for kind in ("strict", "fallback"):
            model, (x,) = self.made("batch_norm", kind)
            model(x)
            again = pickle.loads(pickle.dumps(model))
            again(x)
            if kind == "strict":
                self.refused(lambda: again.eval()(x), "training", file=self.strict["batch_norm"])
            else:
                again(torch.cat([x, x]))

    def test_a_cpu_is_no_gpu(self):
        """Without the interpreter a CPU's tensors are refused before anything is launched."""
        program = (
            "import sys, torch; sys.path.insert(0, sys.argv[1]); import linear\nmodel = linear.ModelNew(24,"
            " 40)\ntry:\n    print(model(torch.randn(32, 24)).shape)\nexcept linear.NotVerified as error:\n  "
            "  print(error)\n"
        )
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
        said = {
            kind: subprocess.run(
                preloaded.command("torch", "-c", program, self.folder / kind),
                env=environment,
                capture_output=True,
                text=True,
            )
            for kind in ("strict", "fallback")
        }
        self.assertIn(
            "on cuda, got a float32 tensor of shape (32, 24) and strides (24, 1) on cpu",
            said["strict"].stdout,
            said["strict"].stderr,
        )
        self.assertIn("torch.Size([32, 40])", said["fallback"].stdout, said["fallback"].stderr)

    # -- with --fallback ------------------------------------------------------------------------------------

    def same(self, name, model, reference, inputs, **keywords):
        reference.load_state_dict(model.state_dict())
        torch.manual_seed(5)
        want = reference(*copy.deepcopy(inputs), **keywords)
        torch.manual_seed(5)
        got = model(*inputs, **keywords)
        self.assertEqual(type(want).__name__, type(got).__name__)
        for a, b in zip(flat(want), flat(got), strict=True):
            torch.testing.assert_close(b, a, equal_nan=True)
        return got

    def test_another_call_is_the_references(self):
        for name in MODULES:
            with self.subTest(name):
                model, inputs = self.made(name, "fallback")
                reference = self.references[name].Model(*self.references[name].get_init_inputs())
                model(*inputs)
                others = (
                    [[t.repeat(3, *[1] * (t.dim() - 1)) for t in inputs[0]], inputs[1]]
                    if name == "nested"
                    else [t.repeat(3, *[1] * (t.dim() - 1)) if t.dim() > 1 else t for t in inputs]
                )
                self.same(name, model, reference, others)
                if name != "embedding":
                    doubled = (
                        [[t.double() for t in inputs[0]], {**inputs[1], "w": inputs[1]["w"].double()}]
                        if name == "nested"
                        else [t.double() for t in inputs]
                    )
                    self.same(name, model.double(), reference.double(), doubled)

    def test_other_modes_constructors_and_keywords_are_the_references(self):
        model, inputs = self.made("batch_norm", "fallback")
        reference = self.references["batch_norm"].Model(8).eval()
        self.same("batch_norm", model.eval(), reference, inputs)
        model, inputs = self.made("dropout", "fallback")
        self.same("dropout", model.train(), self.references["dropout"].Model(0.5).train(), inputs)
        model, (x,) = self.made("softmax", "fallback")
        self.same("softmax", model, self.references["softmax"].Model(), [x], scale=3)
        other = self.fallback["linear"].ModelNew(24, m=41)
        self.same("linear", other, self.references["linear"].Model(24, 41), [torch.randn(32, 24)])

    def test_state_that_the_reference_updates_is_the_modules(self):
        model, (x,) = self.made("batch_norm", "fallback")
        reference = self.references["batch_norm"].Model(8)
        self.same("batch_norm", model, reference, [torch.cat([x, x])])
        for (name, want), (_, got) in zip(
            reference.state_dict().items(), model.state_dict().items(), strict=True
        ):
            torch.testing.assert_close(got, want, msg=name)
        self.assertEqual(1, model.bn.num_batches_tracked.item())

    def test_kernels_that_raise_are_the_references(self):
        quiet = InterpretedFunction.__getitem__
        raised = [None]

        def raising(self, grid):
            def launch(*args, **kwargs):
                if raised[0] is not None:
                    raise raised[0]

            return launch

        InterpretedFunction.__getitem__ = raising
        try:
            for name in ("linear", "nested", "configured"):
                for warm in (False, True):  # a call that was checked in full, or one that looks like it
                    model, inputs = self.made(name, "fallback")
                    raised[0] = None
                    if warm:
                        model(*inputs)
                    raised[0] = RuntimeError("a launch failed")
                    reference = self.references[name].Model(*self.references[name].get_init_inputs())
                    with self.assertWarnsRegex(UserWarning, "raised RuntimeError: a launch failed"):
                        self.same(name, model, reference, inputs)
                    with warnings.catch_warnings():
                        warnings.simplefilter("error")
                        self.same(name, model, reference, inputs)
            model, inputs = self.made("linear", "fallback")
            raised[0] = torch.OutOfMemoryError("full")
            with self.assertWarnsRegex(UserWarning, "full"):
                model(*inputs)
            raised[0] = None
            with warnings.catch_warnings():  # there is memory again
                warnings.simplefilter("error")
                model(*inputs)
            # Where forward writes to its state, half of a write may be done; a strict file has no other
            # forward.
            raised[0] = RuntimeError("a launch failed")
            for name, kind in (("batch_norm", "fallback"), ("linear", "strict")):
                model, inputs = self.made(name, kind)
                with self.assertRaisesRegex(RuntimeError, "a launch failed"):
                    model(*inputs)
        finally:
            InterpretedFunction.__getitem__ = quiet

    def test_gradients_are_the_references(self):
        with torch.enable_grad():
            model, (x,) = self.made("linear", "fallback")
            x.requires_grad_()
            model(x).sum().backward()
            self.assertIsNotNone(x.grad)
            reference = self.references["linear"].Model(24, 40)
            reference.load_state_dict(model.state_dict())
            reference(x.detach()).sum().backward()
            torch.testing.assert_close(model.fc.weight.grad, reference.fc.weight.grad)

    def test_nothing_random_is_drawn_for_the_fallback(self):
        model, (x,) = self.made("linear", "fallback")
        torch.manual_seed(3)
        want = torch.rand(4)
        torch.manual_seed(3)
        model(torch.cat([x, x]))
        torch.testing.assert_close(torch.rand(4), want)

    # -- the kernels, and the cost --------------------------------------------------------------------------

    def test_kernels_compute_below_the_guard(self):
        InterpretedFunction.__getitem__, stub = LAUNCH, InterpretedFunction.__getitem__
        try:
            for name in ("batch_mean", "dictionary", "strided"):
                model, inputs = self.made(name)
                for a, b in zip(
                    flat(self.references[name].Model()(*inputs)), flat(model(*inputs)), strict=True
                ):
                    torch.testing.assert_close(b, a)
        finally:
            InterpretedFunction.__getitem__ = stub

    def test_headers_say_where_the_file_holds(self):
        for name, words in {"linear": ("float32[32, 24]", "Inference only", "ModelNew(24, 40)",
                            "in any mode", "NotVerified"),
                            "half": ("float16[32, 24]", "2 of float16"), "strided": ("strides",),
                            "batch_norm": ("train() and eval() make a difference",),
                            "configured": ("Config(n=24, bias=False)",)}.items():  # fmt: skip
            text = (self.folder / "strict" / f"{name}.py").read_text()
            head = text[: text.index("\n\n")]
            for word in words:
                self.assertIn(word, head.replace("\n# ", " "))
        self.assertIn("original forward", (self.folder / "fallback" / "linear.py").read_text())

    def test_the_check_costs_little(self):
        for name in ("batch_mean", "linear", "dropout", "softmax", "attention", "dictionary", "half"):
            model, inputs = self.made(name)
            own = type(model).forward.__wrapped__
            kept = type(model).forward
            cells = dict(zip(kept.__code__.co_freevars, kept.__closure__))
            cells["own_forward"].cell_contents, original = (
                (lambda self, *args: None),
                cells["own_forward"].cell_contents,
            )
            launched = cells["launched"].cell_contents
            cells |= zip(launched.__code__.co_freevars, launched.__closure__)
            # Without a GPU each call asks again whether its launches can be recorded, which is no part of the
            # check.
            direct, cells["direct"].cell_contents = cells["direct"].cell_contents, None
            try:
                model.forward(*inputs)
                bare = lambda: cells["own_forward"].cell_contents(model, *inputs)  # noqa: E731
                guarded = min(timeit.repeat(lambda: model.forward(*inputs), number=200, repeat=200)) / 200
                without = min(timeit.repeat(bare, number=200, repeat=200)) / 200
            finally:
                cells["own_forward"].cell_contents, cells["direct"].cell_contents = original, direct
            self.assertIs(own, original)
            microseconds = 1e6 * (guarded - without)
            print(
                f"{name}: {microseconds:.2f} us a call, {len(flat(inputs))} inputs, {len(model.state_dict())}"
                " parameters and buffers"
            )
            # A machine that is busy with other things has no say on the bound.
            self.assertLess(
                microseconds, MOST_MICROSECONDS * max(1.0, 2 * os.getloadavg()[0] / os.cpu_count())
            )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
