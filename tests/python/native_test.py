"""The check before a call in native code passes no call that the one in Python does not, and does pass those
that are as before.

    tests/python/native_test.py [PATH/TO/nereid]

Nothing is judged: plans have no kernels.
"""

import collections
import contextlib
import copy
import functools
import gc
import os
import pathlib
import sys
import threading
import types
import unittest
import weakref

os.environ["TRITON_INTERPRET"] = "1"
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    del sys.argv[1]  # the program, which other tests need
FOLDER = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1] / "python"), str(FOLDER)]

import nereid  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from guarded import guarded  # noqa: E402
from nereid import _native  # noqa: E402
from nereid._optimize import kernels  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

X = torch.randn(4, 8)
SCALE = 0.5
CONFIG = {"shift": 0.25, "steps": [1.0, 2.0]}


def helper(x, power=2, *, factor=1.5):
    return x**power * factor


class Wrapped(torch.Tensor):
    pass


class Options:
    level = 1.0

    def __init__(self):
        self.width, self.rates, self.nothing = 6, [0.5, 0.25], 0.0


class Callable:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def times(self, x):
        return x * self.factor


EVERYWHERE = Callable(1.25)
AROUND = nn.Linear(8, 8).requires_grad_(False)


class Part(nn.Module):
    bias = 0.125

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.BatchNorm1d(8)
        self.tied = self.linear.weight
        self.options, self.names = Options(), {"a"}
        self.table, self.array = torch.arange(8.0), numpy.arange(3.0)
        self.slope = functools.partial(F.leaky_relu, negative_slope=0.3)
        self.called, self.bound = Callable(2.0), Callable(3.0).times
        self.hidden = [nn.Sequential(nn.Linear(8, 8), nn.ReLU()).requires_grad_(False)]
        self.missing = nn.Parameter(torch.zeros(1))
        self.register_parameter("missing", None)
        self.unused = nn.Parameter(torch.zeros(3), requires_grad=False)

    def forward(self, x):
        x = self.norm(self.linear(x)) @ self.tied + self.table * self.options.rates[0] + self.options.nothing
        x = AROUND(self.hidden[0](x)) * self.options.level
        x = self.bound(self.called(self.slope(EVERYWHERE(x))))
        x = helper(x) * SCALE + CONFIG["shift"] * CONFIG["steps"][1] + self.bias
        return x * float(self.array[1]) if "a" in self.names and self.missing is None else x


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part, self.act = Part(), nn.ReLU()

    def forward(self, x):
        return F.relu(self.act(self.part(x)))


def setting(holder, name, value):
    """A change of an attribute, or of an item of a dictionary or a list."""

    def change(module):
        held = holder(module)
        if isinstance(held, (dict, list)):
            old, held[name] = held[name], value
            return lambda: held.__setitem__(name, old)
        old = held.__dict__[name] if name in vars(held) else getattr(held, name)
        setattr(held, name, value)
        return lambda: setattr(held, name, old)

    return change


def data(value):
    def change(module):
        parameter = module.part.linear.weight
        old, parameter.data = parameter.data, value(parameter.data)
        return lambda: setattr(parameter, "data", old)

    return change


def bias(value):
    """Another parameter."""

    def change(module):
        linear = module.part.linear
        old, linear.bias = linear.bias, nn.Parameter(value(), requires_grad=False)
        return lambda: setattr(linear, "bias", old)

    return change


def hook(register):
    return lambda module: getattr(module.part.linear, register)(lambda *args: None).remove


def other_dictionary(module):
    options = module.part.options
    old, options.__dict__ = options.__dict__, {**vars(options), "rates": [9.0, 9.0]}
    return lambda: setattr(options, "__dict__", old)


def other_dictionary_of_a_module(module):
    old, module.act.__dict__ = module.act.__dict__, dict(vars(module.act), inplace=True)
    return lambda: setattr(module.act, "__dict__", old)


def another_name(module):
    """An attribute less and another more."""
    del module.part.options.width
    module.part.options.breadth = 6

    def undo():
        del module.part.options.breadth
        module.part.options.width = 6

    return undo


def a_parameter_for_a_buffer(module):
    """The buffer stays, and a parameter of its name hides it, for one that went."""
    held = module.part.norm._parameters
    old = held.pop("bias")
    held["running_mean"] = nn.Parameter(torch.ones(8), requires_grad=False)

    def undo():
        del held["running_mean"]
        held["bias"] = old

    return undo


def other_parameters(module):
    own = vars(module.part.linear)
    old, own["_parameters"] = own["_parameters"], dict(own["_parameters"], bias=nn.Parameter(torch.ones(9)))
    return lambda: own.__setitem__("_parameters", old)


def other_hooks(module):
    own = vars(module.part.linear)
    old, own["_forward_hooks"] = own["_forward_hooks"], {1: lambda *args: None}
    return lambda: own.__setitem__("_forward_hooks", old)


def untied(module):
    module.part.tied = nn.Parameter(module.part.linear.weight.detach().clone(), requires_grad=False)
    return lambda: setattr(module.part, "tied", module.part.linear.weight)


def in_place(module):
    module.part.table.add_(1)
    return None


def code(module):
    old, helper.__code__ = helper.__code__, (lambda x, power=2, *, factor=1.5: x).__code__
    return lambda: setattr(helper, "__code__", old)


def keyword_default(module):
    helper.__kwdefaults__["factor"] = 2.5
    return lambda: helper.__kwdefaults__.update(factor=1.5)


def defaults(module):
    old, helper.__defaults__ = helper.__defaults__, (3,)
    return lambda: setattr(helper, "__defaults__", old)


def names(module):
    module.part.names.clear()
    return lambda: module.part.names.add("a")


def array(module):
    module.part.array[1] += 1
    return lambda: module.part.array.__setitem__(1, 1.0)


def gradient(name):
    def change(module):
        module.get_parameter(name).requires_grad_(True)
        return lambda: module.get_parameter(name).requires_grad_(False)

    return change


def global_hook(module):
    return nn.modules.module.register_module_forward_hook(lambda *args: None).remove


def default_dtype(module):
    torch.set_default_dtype(torch.float64)
    return lambda: torch.set_default_dtype(torch.float32)


def options(module):
    return module.part.options


def transposed_memory(value):
    return value.t().contiguous().t()


@contextlib.contextmanager
def autocast_of_cuda():
    torch.set_autocast_enabled("cuda", True)  # torch.autocast does not without a GPU
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)


here = sys.modules[__name__]
CHANGES = {
    "a number": setting(options, "nothing", 1.0),
    "a negative zero": setting(options, "nothing", -0.0),
    "an integer for a float": setting(options, "nothing", 0),
    "an item of a list": setting(lambda module: options(module).rates, 0, 0.75),
    "a list": setting(options, "rates", [0.75, 0.25]),
    "another name": another_name,
    "another dictionary of attributes": other_dictionary,
    "another dictionary of a module": other_dictionary_of_a_module,
    "an attribute of a class": setting(lambda module: Part, "bias", 0.5),
    "a global": setting(lambda module: here, "SCALE", 0.75),
    "an item of a global": setting(lambda module: CONFIG, "shift", 0.5),
    "an item of an item of a global": setting(lambda module: CONFIG["steps"], 1, 0.5),
    "a function": setting(lambda module: here, "helper", lambda x: x),
    "a function's code": code,
    "a function's defaults": defaults,
    "a function's default by name": keyword_default,
    "a function of torch": setting(lambda module: F, "relu", lambda x: x),
    "a keyword of a partial": setting(lambda module: module.part.slope.keywords, "negative_slope", 0.9),
    "a partial": setting(lambda module: module.part, "slope",
        functools.partial(F.leaky_relu, negative_slope=0.5)),
    "an attribute of what is called": setting(lambda module: module.part.called, "factor", 4.0),
    "an attribute of a method's object": setting(lambda module: module.part.bound.__self__, "factor", 4.0),
    "an attribute of a global that is called": setting(lambda module: EVERYWHERE, "factor", 4.0),
    "the code of a call": lambda module: (
        lambda old: setattr(Callable.__call__, "__code__", (lambda self, x: x).__code__)
        or (lambda: setattr(Callable.__call__, "__code__", old))
    )(Callable.__call__.__code__),
    "a class's attribute of an object": setting(lambda module: Options, "level", 2.0),
    "an attribute that hides its class's": lambda module: setattr(module.part.options, "level", 2.0)
    or (lambda: delattr(module.part.options, "level")),
    "a module in a list": setting(lambda module: module.part.hidden, 0, nn.Identity()),
    "a part of a module in a list": setting(lambda module: module.part.hidden[0], "1", nn.Identity()),
    "a parameter of a module in a list": setting(lambda module: module.part.hidden[0][0], "bias", None),
    "values of a module in a list": lambda module: (module.part.hidden[0][0].weight.mul_(2), None)[1],
    "data of a module in a list": lambda module: setattr(module.part.hidden[0][0].weight, "data",
        torch.ones(8, 8)),
    "a hook of a module in a list": lambda module: module.part.hidden[0][0].register_forward_hook(
        lambda *args: None
    ).remove,
    "a parameter of a module around": setting(lambda module: AROUND, "bias", nn.Parameter(torch.ones(8))),
    "data of a tensor": lambda module: setattr(module.part.table, "data", torch.ones(8)),
    "a view of its data": lambda module: setattr(module.part.table, "data", module.part.table.data[::2]),
    "an attribute of a function": lambda module: setattr(helper, "extra",
        1) or (lambda: delattr(helper, "extra")),
    "a set": names,
    "an array": array,
    "a tensor in place": in_place,
    "a mode": lambda module: module.part.norm.train() and None,
    "a submodule": setting(lambda module: module, "act", nn.ReLU6()),
    "a forward of an instance": lambda module: setattr(module.act, "forward", lambda x: x),
    "a class": setting(lambda module: module.act, "__class__", nn.ReLU6),
    "a class of an object": setting(options, "__class__", type("Other", (Options,), {})),
    "a hook": hook("register_forward_hook"),
    "a hook before": hook("register_forward_pre_hook"),
    "a hook of gradients": hook("register_full_backward_hook"),
    "hooks put in place of others": other_hooks,
    "a hook of all modules": global_hook,
    "another shape": data(lambda value: torch.ones(8, 4)),
    "other strides": data(transposed_memory),
    "another dtype": data(torch.Tensor.double),
    "another device": bias(lambda: torch.ones(8, device="meta")),
    "a parameter of a subclass": bias(lambda: torch.ones(8).as_subclass(Wrapped)),
    "a sparse parameter": bias(lambda: torch.ones(8).to_sparse()),
    "a negated parameter": bias(lambda: torch.ones(8, dtype=torch.complex64).conj().imag),
    "no parameter": setting(lambda module: module.part.linear, "bias", None),
    "a parameter where there was none": setting(lambda module: module.part, "missing",
        nn.Parameter(torch.zeros(1))),
    "a parameter for a buffer": a_parameter_for_a_buffer,
    "another dictionary of parameters": other_parameters,
    "an untied parameter": untied,
    "a gradient": gradient("part.linear.bias"),
    "a gradient of what is not used": gradient("part.unused"),
    "a default dtype": default_dtype,
}  # fmt: skip


class Native(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(_native.extension(), "nereid_native.abi3.so is not built")

    def made(self, module, *args, **kwargs):
        fast = guarded(module.eval().requires_grad_(False), *args, **kwargs)
        self.assertIsNone(fast._nereid_choice(args, kwargs)[1])
        self.assertIsNotNone(fast._nereid_native.matched(args, kwargs))
        return fast

    def asked(self, fast, *args, **kwargs):
        """Whether there is a native check and it passes; it does where Python's does, on the same tensors, or
        not at all."""
        matched = fast._nereid_native.matched
        native = matched(args, kwargs) if matched is not None else None
        if native is not None:
            why, tensors = fast._nereid_differs(args, kwargs)
            self.assertIsNone(why)
            self.assertEqual([id(tensor) for tensor in native], [id(tensor) for tensor in tensors])
        return native is not None


class Modules(Native):
    @classmethod
    def setUpClass(cls):
        cls.plan = guarded(Whole().eval().requires_grad_(False), X)._nereid_plan

    def another(self, module):
        """As `made` for a Whole, which is exported once."""
        fast = nereid.Optimized(module.eval().requires_grad_(False), self.plan)
        self.assertIsNone(fast._nereid_choice((X,), {})[1])
        self.assertIsNotNone(fast._nereid_native.matched((X,), {}))
        return fast

    def test_each_change_is_seen(self):
        for name, change in CHANGES.items():
            with self.subTest(name):
                module = Whole()
                fast = self.another(module)
                with torch.no_grad():
                    undo = change(module)
                try:
                    self.assertIsNotNone(fast._nereid_differs((X,), {})[0], "Python sees no change")
                    self.assertFalse(self.asked(fast, X))
                finally:
                    if undo is not None:
                        undo()
                if undo is not None and name != "another dictionary of a module":
                    fast._nereid_choice((X,), {})
                    self.assertTrue(self.asked(fast, X))

    def test_what_is_no_change_is_learned(self):
        changes = {
            "an equal number": lambda module: setattr(module.part.options, "nothing", float("0.0")),
            "a tied parameter that is another": lambda module: (
                setattr(module.part.linear, "weight", nn.Parameter(torch.ones(8, 8), requires_grad=False))
                or setattr(module.part, "tied", module.part.linear.weight)
            ),
            "an equal list": lambda module: setattr(module.part.options, "rates", [0.5, 0.25]),
            "another parameter": lambda module: setattr(
                module.part.linear, "bias", nn.Parameter(torch.ones(8), requires_grad=False)
            ),
            "other values": lambda module: module.load_state_dict(Whole().state_dict()),
        }
        for name, change in changes.items():
            with self.subTest(name):
                module = Whole()
                fast = self.another(module)
                change(module)
                self.assertIsNone(fast._nereid_choice((X,), {})[1])
                self.assertTrue(self.asked(fast, X))
                module.part.options.rates[0] = 0.75  # of the new list, too
                self.assertFalse(self.asked(fast, X))

    def test_what_lies_around_a_call(self):
        class Functions(TorchFunctionMode):
            pass

        class Dispatch(TorchDispatchMode):
            def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
                return function(*args, **(kwargs or {}))

        fast = self.made(Whole(), X)
        around = {
            "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
            "autocast of another device": autocast_of_cuda,
            "a function mode": Functions,
            "a default device": lambda: torch.device("meta"),
            "a dispatch mode": Dispatch,
            "forward-mode gradients": forward_ad.dual_level,
        }
        for name, context in around.items():
            with self.subTest(name), context():
                self.assertFalse(self.asked(fast, X))
        seen = []

        def call(x):
            seen.append(self.asked(fast, x))
            return x * 2

        torch.vmap(call)(X.expand(3, 4, 8))
        torch.func.grad(lambda x: call(x).sum())(X)
        torch.func.jvp(call, (X,), (X,))
        torch.jit.trace(call, (X,), check_trace=False)
        torch.fx.experimental.proxy_tensor.make_fx(call)(X)
        self.assertEqual(seen, [False] * 5)
        for context in (torch.no_grad, torch.inference_mode):
            with self.subTest(context.__name__), context():
                self.assertIsNone(fast._nereid_choice((X,), {})[1])
                self.assertTrue(self.asked(fast, X))
        self.assertTrue(self.asked(fast, X))

    def test_modes_that_were_there_at_first(self):
        with torch.autocast("cpu", torch.bfloat16), torch.device("cpu"):
            fast = self.made(nn.Linear(8, 8), X)
            with torch.device("meta"):
                self.assertFalse(self.asked(fast, X))
            with torch.autocast("cpu", torch.float16):
                self.assertFalse(self.asked(fast, X))
        self.assertFalse(self.asked(fast, X))

    def test_gradients(self):
        fast = guarded(nn.Linear(8, 8), X)
        with torch.no_grad():
            self.assertIsNone(fast._nereid_choice((X,), {})[1])
            self.assertTrue(self.asked(fast, X))
        self.assertFalse(self.asked(fast, X))
        fast = self.made(nn.Linear(8, 8), X)
        self.assertFalse(self.asked(fast, X.clone().requires_grad_()))

    def test_the_environment(self):
        fast = self.made(nn.Linear(8, 8), X)
        os.environ["TRITON_INTERPRET"] = "0"
        try:
            self.assertFalse(self.asked(fast, X))
        finally:
            os.environ["TRITON_INTERPRET"] = "1"

    def test_state_that_forward_writes_to_is_left_to_python(self):
        fast = guarded(nn.BatchNorm1d(8).train().requires_grad_(False), X)
        self.assertIsNone(fast._nereid_choice((X,), {})[1])
        self.assertIsNone(fast._nereid_native.matched)

    def test_a_failure_ends_it(self):
        fast = self.made(nn.Linear(8, 8), X)
        fast._nereid_fails("it failed")
        self.assertEqual(fast._nereid_choice((X,), {})[1], "it failed")
        self.assertIsNone(fast._nereid_native.matched)

    def test_copies_have_their_own(self):
        fast = self.made(Whole(), X)
        other = copy.deepcopy(fast)
        self.assertIsNone(other._nereid_choice((X,), {})[1])
        other._nereid_original.part.options.nothing = 1.0
        self.assertTrue(self.asked(fast, X))
        self.assertFalse(self.asked(other, X))

    def test_it_is_collected(self):
        module = Whole()
        fast = self.made(module, X)
        module.act.fast = [fast]  # in a circle
        gone = weakref.ref(fast), weakref.ref(module)
        del module, fast
        gc.collect()
        self.assertEqual([ref() for ref in gone], [None, None])

    def test_threads_that_change_and_call(self):
        module = Whole()
        fast, wrong, stop = self.made(module, X), [], threading.Event()

        def calls():
            while not stop.is_set():
                native = fast._nereid_native.matched
                if native is not None and native((X, X), {}) is not None:
                    wrong.append("two arguments for one")
                fast._nereid_choice((X,), {})

        threads = [threading.Thread(target=calls) for _ in range(3)]
        for thread in threads:
            thread.start()
        for step in range(60):
            module.part.options.rates = [0.5, 0.25] if step % 2 else [0.75, 0.25]
            module.part.linear.bias = nn.Parameter(torch.ones(8), requires_grad=False)
        stop.set()
        for thread in threads:
            thread.join()
        module.part.options.rates = [0.75, 0.25]
        self.assertEqual(wrong, [])
        self.assertFalse(self.asked(fast, X))  # also where the last change left no native check at all
        self.assertIsNotNone(fast._nereid_choice((X,), {})[1])


Pair = collections.namedtuple("Pair", "a b")


class Text(str):
    pass


class Takes(nn.Module):
    def forward(self, a, b, *rest, scale=1.0, flag=None, nested=(), **more):
        a = a * scale + b.sum()
        for value in (*rest, *nested, *more.values()):
            a = a + (value["x"] if isinstance(value, dict) else value)
        return a if flag is None else a + 1


class Arguments(Native):
    def test_tensors(self):
        module = nn.Linear(8, 8)
        fast = self.made(module, X)
        complexes = torch.randn(4, 8, dtype=torch.complex64)
        others = {
            "another batch": torch.randn(5, 8),
            "no batch": X[0],
            "another dtype": X.double(),
            "other strides": torch.randn(8, 4).t(),
            "expanded": torch.randn(1, 8).expand(4, 8),
            "a parameter": nn.Parameter(X),
            "a subclass": X.as_subclass(Wrapped),
            "another device": X.to("meta"),
            "sparse": X.to_sparse(),
            "a lazy negation": complexes.conj().imag,
            "a list": X.tolist(),
            "none": None,
            "an array": X.numpy(),
        }
        for name, value in others.items():
            with self.subTest(name):
                self.assertFalse(self.asked(fast, value))
        self.assertFalse(self.asked(fast))
        self.assertFalse(self.asked(fast, X, X))
        self.assertTrue(self.asked(fast, X.clone()))
        self.assertFalse(self.asked(self.made(Takes(), complexes, X), complexes.conj(), X))
        with torch.inference_mode():
            inferred = torch.randn(4, 8)
        self.asked(fast, inferred)
        self.assertFalse(self.asked(fast, input=X))
        self.assertIsNone(fast._nereid_choice((), {"input": X})[1])
        self.assertTrue(self.asked(fast, input=X))
        self.assertTrue(self.asked(fast, X))
        self.assertFalse(self.asked(fast, inputs=X))

    def test_constants(self):
        one = dict(scale=2.0, flag=True, word="a", count=3)

        class Constants(nn.Module):
            def forward(self, x, scale, flag, word, count, zero=0.0):
                return x * scale + zero if flag and word == "a" and count == 3 else x

        fast = self.made(Constants(), X, **one)
        same = [{"scale": float("2")}, {"word": "".join(["a"])}]
        others = [
            {"scale": 2}, {"scale": -2.0}, {"flag": 1}, {"flag": None}, {"word": Text("a")}, {"word": "b"},
            {"word": b"a"},
            {"count": 3.0}, {"count": True}, {"count": 4}, {"zero": -0.0}, {"zero": 0}, {"zero": 0.0},
            {"scale": numpy.float64(2)},
            {"scale": torch.tensor(2.0)},
        ]  # fmt: skip
        for more in same:
            with self.subTest(more):
                self.assertTrue(self.asked(fast, X, **{**one, **more}))
        for more in others:
            with self.subTest(more):
                self.assertFalse(self.asked(fast, X, **{**one, **more}))

    def test_structures(self):
        fast = self.made(Takes(), X, X.clone(), nested=(X.clone(), {"x": X.clone()}))
        others = [
            (X, {"x": X}),
            [X.clone(), {"x": X.clone()}],
            (X.clone(), {"y": X.clone()}),
            (X.clone(), {"x": X.clone(), "y": 1}),
            (X.clone(), collections.OrderedDict(x=X.clone())),
            Pair(X.clone(), {"x": X.clone()}),
            (X.clone(),),
            (X.clone(), X.clone()),
        ]
        for nested in others:
            with self.subTest(str(type(nested))):
                self.assertFalse(self.asked(fast, X, X.clone(), nested=nested))
        self.assertTrue(self.asked(fast, X, X.clone(), nested=(X.clone(), {"x": X.clone()})))

    def test_order_of_names(self):
        a, b = X.clone(), X.clone()
        fast = self.made(Takes(), b=b, a=a)
        self.assertTrue(self.asked(fast, b=b, a=a))
        self.assertFalse(self.asked(fast, a=a, b=b))
        self.assertIsNone(fast._nereid_choice((), dict(a=a, b=b))[1])
        self.assertTrue(self.asked(fast, a=a, b=b))
        fast = self.made(Takes(), X, a, p=b, q=X.clone())
        self.assertTrue(self.asked(fast, X, a, p=b, q=X.clone()))
        self.assertFalse(self.asked(fast, X, a, q=b, p=X.clone()))

    def test_memory_that_is_shared(self):
        whole = torch.randn(8, 8)
        fast = self.made(Takes(), whole[:4], whole[4:])
        self.assertTrue(self.asked(fast, whole[:4], whole[4:]))
        self.assertFalse(self.asked(fast, X, X.clone()))
        fast = self.made(Takes(), X, X.clone())
        self.assertFalse(self.asked(fast, whole[:4], whole[4:]))
        self.assertFalse(self.asked(fast, X, X))
        fast = self.made(Takes(), X, X)
        self.assertTrue(self.asked(fast, X, X))
        self.assertFalse(self.asked(fast, whole[:4], whole[4:]))
        self.assertIsNone(fast._nereid_choice((whole[:4], whole[4:]), {})[1])
        self.assertTrue(self.asked(fast, whole[:4], whole[4:]))
        self.assertTrue(self.asked(fast, X, X))
        self.assertFalse(self.asked(fast, X, X.clone()))
        self.assertIsNone(fast._nereid_choice((), dict(b=X, a=X))[1])
        self.asked(fast, b=whole[:4], a=whole[4:])

    def test_many_forms(self):
        fast = self.made(Takes(), X, X.clone())
        for names in range(40):
            more = {f"n{names}": None}
            self.assertIsNotNone(fast._nereid_choice((X, X.clone()), more)[1])
        self.assertTrue(self.asked(fast, X, X.clone()))

    def test_hostile_values(self):
        class Equal:
            def __eq__(self, other):
                return True

            __hash__ = None

        class Liar(torch.Tensor):
            @property
            def __class__(self):
                return torch.Tensor

        fast = self.made(Takes(), X, X.clone(), scale=2.0)
        self.assertFalse(self.asked(fast, X, X.clone(), scale=Equal()))
        self.assertFalse(self.asked(fast, X, X.as_subclass(Liar), scale=2.0))
        with self.assertRaises(TypeError):
            fast._nereid_native.matched([X], {})
        with self.assertRaises(TypeError):
            fast._nereid_native.matched((X,))

    def test_an_interrupt_is_passed_on(self):
        guard = _native.extension().CallGuard(
            dict.fromkeys(("owners", "entries", "sizes", "attributes", "answers", "state", "absent"), [])
            | {"refusals": [interrupt], "functions": [bool, bool]}
        )
        with self.assertRaises(KeyboardInterrupt):
            guard.unchanged()

    def test_lists_that_are_not_right_are_refused(self):
        native = _native.extension()
        with contextlib.suppress(TypeError):
            native.CallGuard({})
            self.fail("no lists are taken")
        names = ("owners", "entries", "sizes", "attributes", "answers", "state", "absent", "refusals")
        empty = dict.fromkeys((*names, "functions"), [])
        for name, one in {"entries": (1, 2), "sizes": ("a", "b"), "owners": 3}.items():
            with self.subTest(name), self.assertRaises((TypeError, ValueError, SystemError)):
                native.CallGuard({**empty, name: [one]})
        guard = native.CallGuard(empty)
        for form in (
            (),
            (("tensor", torch.Tensor, 1), ("dict", (), ()), 1, (0,), bool, (), False),
            (("tensor", torch.Tensor, 0), ("dict", (), ()), 1, (1,), bool, (), False),
            (("tensor", torch.Tensor, 0), ("dict", (), ()), 1, (), bool, (), False),
        ):
            with self.assertRaises((TypeError, ValueError)):
                guard.add(form)


def interrupt():
    raise KeyboardInterrupt


class Stand:
    """For the written file's module: launches that are recorded, of a Linear."""

    def __init__(self, linear, device=None):
        self.again, self.answers = object(), []

        def launches(x, *state):
            self.state = state
            answer = self.answers.pop(0) if self.answers else F.linear(x, state[0], state[1])
            if isinstance(answer, Exception):
                raise answer
            return answer

        launches = types.FunctionType(
            launches.__code__, {**globals(), "AGAIN": self.again}, "launches", None, launches.__closure__
        )
        known = ((1, 3, None, [], [linear._parameters]), False, device, [launches, 0])
        self._guard_seen = types.SimpleNamespace(known=known)


class Direct(Native):
    """Launches that the written file has recorded are issued without its check: theirs is done."""

    def made_direct(self, device=None):
        linear = nn.Linear(8, 8)
        fast = self.made(linear, X)
        stand = Stand(linear, device)
        held = kernels.Kernels.__new__(kernels.Kernels)
        held._module, held._renamed, held._single = stand, [], True
        runs = []
        held.run = lambda given: runs.append(1) or (F.linear(given[0], linear.weight, linear.bias),)
        held.not_verified = ZeroDivisionError
        fast.__dict__.update(_nereid_kernels=held, _nereid_ran=True)
        torch.testing.assert_close(fast(X), linear(X))
        self.assertEqual(len(runs), 1)
        self.assertIsNotNone(fast._nereid_direct)
        return fast, linear, stand, runs

    def test_they_run_alone(self):
        fast, linear, stand, runs = self.made_direct()
        for _ in range(2):
            torch.testing.assert_close(fast(X), linear(X))
        self.assertEqual(len(runs), 1)
        linear.weight.data = torch.randn(8, 8)
        weight = linear.weight
        del linear.weight  # and it is the last one of the module's
        linear.weight = weight
        self.assertEqual(list(linear._parameters), ["bias", "weight"])
        torch.testing.assert_close(fast(X), linear(X))
        self.assertIs(stand.state[0], linear.weight)

    def test_what_they_cannot_do_goes_the_long_way(self):
        fast, linear, stand, runs = self.made_direct()
        for answer in (stand.again, RuntimeError("CUDA error"), torch.OutOfMemoryError("no memory")):
            stand.answers.append(answer)
            torch.testing.assert_close(fast(X), linear(X))
        self.assertEqual(len(runs), 4)
        torch.testing.assert_close(fast(X[:2]), linear(X[:2]))
        self.assertEqual(len(runs), 4)
        fast._nereid_fails("it failed")
        self.assertIsNone(fast._nereid_direct)

    def test_an_interrupt_is_passed_on(self):
        fast, _, stand, _ = self.made_direct()
        fast._nereid_direct = lambda *_: interrupt()
        with self.assertRaises(KeyboardInterrupt):
            fast(X)

    def test_what_they_are_not_for(self):
        exported = self.made(nn.Linear(8, 8), X)._nereid_plan.exported
        for change in ({"written": ["x"]}, {"mutates_inputs": True}, {"leading": [True]}, {"copied": [True]}):
            held = kernels.Kernels.__new__(kernels.Kernels)
            held._module, held._renamed, held._single = Stand(nn.Linear(8, 8)), [], True
            self.assertIsNotNone(held.direct(exported))
            changed = copy.copy(exported)
            vars(changed).update(change)
            self.assertIsNone(held.direct(changed))
            held._renamed = [1]
            self.assertIsNone(held.direct(exported))


class Missing(unittest.TestCase):
    def test_without_the_extension_python_checks(self):
        held, _native.extension = _native.extension, types.FunctionType((lambda: None).__code__, {})
        try:
            fast = guarded(nn.Linear(8, 8).requires_grad_(False), X)
            self.assertIsNone(fast._nereid_choice((X,), {})[1])
            self.assertIsNone(fast._nereid_native.matched)
            self.assertIsNotNone(fast._nereid_choice((X[:2],), {})[1])
        finally:
            _native.extension = held


if __name__ == "__main__":
    unittest.main()
