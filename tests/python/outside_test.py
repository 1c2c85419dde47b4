"""What a live module does and reads besides its tensors: attributes, globals, random numbers, clocks, code
that is replaced, and structures that hold more than their fields.

    tests/python/outside_test.py PATH/TO/nereid

Nothing is judged: what cannot be exported is refused before, and the rest asks the guard alone.
"""

import collections
import copy
import dataclasses
import functools
import itertools
import os
import pathlib
import pickle
import random
import sys
import time
import unittest
import warnings

if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    os.environ["NEREID_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import nereid  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from nereid import _export, _structure  # noqa: E402
from nereid._optimize import call, plan, watched  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)  # noqa: E402

X = torch.randn(4, 8)


def module(forward, **attributes):
    class Module(nn.Module):
        pass

    Module.forward = forward
    made = Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made.eval()


def export(made, *args):
    bound = call.Call(made).bind(args, {})
    return plan.exported_module(made, call.Call(made), bound, plan.Settings(1, "ieee", {}))


class Calls(nn.Module):
    """Keeps how often it was called, and what it computed last."""

    def __init__(self):
        super().__init__()
        self.linear, self.count, self.last = nn.Linear(8, 8), 0, None

    def forward(self, x):
        self.count += 1
        self.last = self.linear(x)
        return self.last.relu()


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = torch.arange(8.0)
        return x + self.table


class Box:
    pass


HELD = {"name": None}


def caches():
    """Forwards that keep a tensor from their first call, each elsewhere."""
    kept, variable, items = {}, None, [None]

    @functools.lru_cache
    def table(n):
        return torch.arange(float(n))

    def attribute_of_itself():
        if not hasattr(attribute_of_itself, "kept"):
            attribute_of_itself.kept = torch.arange(8.0)
        return attribute_of_itself.kept

    class Class:
        kept = None

    def in_a_closure(self, x):
        nonlocal variable
        variable = torch.arange(8.0) if variable is None else variable
        return x + variable

    def in_a_dictionary(self, x):
        if 8 not in kept:
            kept[8] = torch.arange(8.0)
        return x + kept[8]

    def in_a_list(self, x):
        items[0] = torch.arange(8.0) if items[0] is None else items[0]
        return x + items[0]

    def in_a_global(self, x):
        HELD["name"] = torch.arange(8.0) if HELD["name"] is None else HELD["name"]
        return x + HELD["name"]

    def in_a_class(self, x):
        Class.kept = torch.arange(8.0) if Class.kept is None else Class.kept
        return x + Class.kept

    def in_an_attribute(self, x):
        if 8 not in self.cache:
            self.cache[8] = torch.arange(8.0)
        return x + self.cache[8]

    def in_an_object(self, x):
        if not hasattr(self.box, "kept"):
            self.box.kept = torch.arange(8.0)
        return x + self.box.kept

    def in_the_module(self, x):
        if not hasattr(self, "kept"):
            self.kept = torch.arange(8.0)
        return x + self.kept

    return {
        "functools": lambda self, x: x + table(8), "a function": lambda self, x: x + attribute_of_itself(),
        "a closure": in_a_closure, "a dictionary": in_a_dictionary, "a list": in_a_list,
        "a global": in_a_global,
        "a class": in_a_class, "an attribute": in_an_attribute, "an object": in_an_object,
        "the module": in_the_module,
    }  # fmt: skip


TOTAL = {"calls": 0}


def counts_in_a_global(self, x):
    TOTAL["calls"] += 1
    return x * 2


def appends(self, x):
    self.log.append(tuple(x.shape))
    return x * 2


REFUSED = {
    "a counter": (Calls(), "attribute (count|last)"),
    "a list": (module(appends, log=[]), "log: expected 0 attributes or items, got 1"),
    "a global": (module(counts_in_a_global), r"TOTAL\['calls'\]: expected 0, got 1"),
    "an empty cache": (Cached(), "attribute table"),
    "random": (module(lambda self, x: x * random.random()), "random numbers of Python or NumPy"),
    "numpy.random": (module(lambda self, x: x * float(numpy.random.rand())), "random numbers of Python"),
    "random.Random": (
        module(lambda self, x: x * self.source.random(), source=random.Random(3)),
        "attribute source",
    ),
    "numpy's generator": (
        module(lambda self, x: x * self.source.random(), source=numpy.random.default_rng(3)),
        "attribute source",
    ),
    "an iterator": (
        module(lambda self, x: x * next(self.steps), steps=itertools.count(1)),
        "steps is an iterator",
    ),
    "a clock": (module(lambda self, x: x * (time.time() % 7)), "reads a clock"),
}


class Effects(unittest.TestCase):
    """Kernels change tensors alone, and what forward computed once in Python is a constant in them."""

    def test_forward_that_does_more_runs_itself(self):
        for name, (made, says) in REFUSED.items():
            with self.subTest(name), torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if name == "a clock":
                    self.assertRegex(nereid.optimize(made, (X,), device="cpu").nereid_reason, says)
                    continue
                fast, alone = nereid.optimize(made, (X,), device="cpu"), copy.deepcopy(made)
                self.assertRegex(fast.nereid_reason, says)
                for _ in range(3):
                    held = random.getstate(), numpy.random.get_state()
                    got = fast(X)
                    random.setstate(held[0]), numpy.random.set_state(held[1])
                    torch.testing.assert_close(got, alone(X))
                for key in ("count", "log"):
                    self.assertEqual(getattr(made, key, None), getattr(alone, key, None))

    def test_nothing_of_a_trace_is_left_in_caches(self):
        for name, forward in caches().items():
            with self.subTest(name):
                made = module(forward, cache={}, box=Box())
                with self.assertRaisesRegex(_structure.Unsupported, "changes|fills the cache"):
                    export(made, X)
                want = X + torch.arange(8.0)
                for _ in range(2):
                    got = made(X)
                    self.assertIs(type(got), torch.Tensor)
                    torch.testing.assert_close(got, want)
                self.assertIn("forward", export(made, X).source)  # now it is full

    def test_a_cache_is_emptied_of_a_trace_that_fails(self):
        kept = {}

        def forward(self, x):
            kept.setdefault("table", torch.arange(8.0))
            return x + kept["table"] if float(x.sum()) < 1e9 else x

        made = module(forward)
        with self.assertRaises(_structure.Unsupported):
            export(made, X)
        torch.testing.assert_close(made(X), X + torch.arange(8.0))

    def test_a_cache_that_is_full_is_a_constant(self):
        made = Cached()
        with self.assertRaises(_structure.Unsupported):
            export(made, X)
        made(X)
        self.assertIn("forward", export(made, X).source)

    def test_a_submodule_that_is_held_twice_has_no_effect(self):
        relu = nn.ReLU()
        self.assertIn("relu", export(nn.Sequential(nn.Linear(8, 8), relu, nn.Linear(8, 8), relu), X).source)

    def test_a_recurrent_layer_has_no_effect(self):
        self.assertIn("lstm", export(nn.LSTM(8, 8).eval(), torch.randn(3, 2, 8)).source)


class Registry(dict):
    """Makes an object of what it holds, as transformers' ACT2FN does."""

    def __getitem__(self, name):
        return super().__getitem__(name)()


LAYERS = Registry(gelu=nn.GELU, relu=nn.ReLU)


def with_default(self, x, *, scale=2.0):
    return x * scale


class Reads(unittest.TestCase):
    """What the guard of a call compares."""

    def seen(self, made, change, says):
        state = watched.Watched(made)
        self.assertIsNone(state.differs())
        change()
        self.assertRegex(state.differs() or "None", says)

    def test_functions_of_torch_that_are_replaced(self):
        gelu, linear, relu = F.gelu, F.linear, torch.relu
        for made, holder, name in (
            (module(lambda self, x: F.gelu(x)), F, "gelu"),
            (module(lambda self, x: torch.nn.functional.gelu(x)), F, "gelu"),
            (nn.Sequential(nn.Linear(8, 8)), F, "linear"),
            (module(lambda self, x: torch.relu(x)), torch, "relu"),
        ):
            try:
                self.seen(made, lambda h=holder, n=name: setattr(h, n, F.silu), f"{name}: expected")
            finally:
                F.gelu, F.linear, torch.relu = gelu, linear, relu

    def test_code_that_is_replaced_in_place(self):  # as IPython's autoreload does it
        def helper(x):
            return x * 2

        made = module(lambda self, x: helper(x) + 1)
        self.seen(made, lambda: setattr(helper, "__code__", (lambda x: x * 3).__code__), "its code")
        forward = type(made).forward
        self.seen(made, lambda: setattr(forward, "__defaults__", (1,)), "defaults")

    def test_defaults_of_keywords(self):
        made = module(with_default)
        kept = dict(with_default.__kwdefaults__)
        try:
            self.seen(made, lambda: with_default.__kwdefaults__.update(scale=3.0), "expected 2.0, got 3.0")
        finally:
            with_default.__kwdefaults__.update(kept)

    def test_the_environment_where_forward_names_it(self):
        try:
            made = module(lambda self, x: x * float(os.environ.get("NEREID_TEST_SCALE", "2")))
            self.seen(made, lambda: os.environ.update(NEREID_TEST_SCALE="3"), "the environment")
            other = watched.Watched(module(lambda self, x: x * 2))
            os.environ["NEREID_TEST_SCALE"] = "4"
            self.assertIsNone(other.differs())
        finally:
            os.environ.pop("NEREID_TEST_SCALE", None)

    def test_new_values_of_parameters_are_no_change(self):
        made = nn.LSTM(8, 8)
        state = watched.Watched(made)  # its list of weights is an attribute
        made.load_state_dict({name: value + 1 for name, value in made.state_dict().items()})
        self.assertIsNone(state.differs())

    def test_containers_that_torch_export_makes_anew(self):
        made = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)).requires_grad_(False)
        made.sizes, made.table = [1, (2, 3)], {"a": [4]}
        state = watched.Watched(made)
        torch.export.export(made, (X,))
        self.assertIsNone(state.differs())
        made.sizes = [1, (2, 3)]
        self.assertIsNone(state.differs())
        made.sizes[1] = (2, 4)
        self.assertIn("sizes", state.differs())
        made.sizes, made.table = [1, (2, 3)], {"a": [5]}
        self.assertIn("table", state.differs())

    def test_a_registry_that_makes_objects_is_the_same(self):
        made = module(lambda self, x: LAYERS["gelu"](x))
        self.seen(made, lambda: LAYERS.update(gelu=nn.SiLU), "LAYERS")


SHIFT = 2.0


def operator_of(name, **options):
    """Makes an operator of a package of ours from a function; its result is like the first argument."""

    def make(function):
        made = torch.library.custom_op(name, function, mutates_args=(), **options)
        made.register_fake(lambda x, *_: torch.empty_like(x))
        return made

    return make


@operator_of("nereid_test::shifted")
def shifted(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by + SHIFT


@operator_of("nereid_test::branches")
def branches(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x * 3


@operator_of("nereid_test::two")
def two(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@two.register_kernel("cuda")
def _(x):
    return x + x


def grouped(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """Row ranges times matrices, as packages write it: the ends of the ranges are read."""
    output, start = input.new_zeros(input.shape[0], weight.shape[2]), 0
    for matrix, end in zip(weight, offs.tolist()):
        output[start:end] = input[start:end] @ matrix
        start = end
    return output


class Operators(unittest.TestCase):
    """Operators of other packages."""

    def exported(self, made, **arguments):
        return _export.export(made, arguments, lambda module, bound: module(**bound), functions=True).source

    def test_a_python_function_is_traced(self):
        for forward in (
            lambda self, x: shifted(x, 3.0),
            lambda self, x: torch.ops.nereid_test.shifted(x, by=3.0),
            lambda self, x: torch.ops.nereid_test.shifted.default(x, 3.0),
        ):
            made = module(forward)
            source = self.exported(made, x=X)
            self.assertNotIn("nereid_test", source)
            space = {}
            exec(source, space)
            self.assertTrue(torch.equal(space["Model"]()(X), made(X)))

    def test_what_its_function_reads_is_watched(self):
        for forward in (
            lambda self, x: shifted(x, 3.0),
            lambda self, x: torch.ops.nereid_test.shifted(x, 3.0),
        ):
            state = watched.Watched(module(forward))
            self.assertIsNone(state.differs())
            globals()["SHIFT"] = 3.0
            self.addCleanup(globals().update, SHIFT=2.0)
            self.assertIn("SHIFT", state.differs())
            globals()["SHIFT"] = 2.0

    def test_others_are_named(self):
        for operator, why in (
            (branches, "its function is not traced"),
            (two, "no operator of PyTorch's own"),
        ):
            with self.assertRaisesRegex(_structure.Unsupported, f"nereid_test.*{operator._name[13:]}.*{why}"):
                self.exported(module(lambda self, x, operator=operator: operator(x)), x=X)

    def test_grouped_products_have_a_definition(self):
        made = torch.library.custom_op("transformers::grouped_mm_fallback", grouped, mutates_args=())
        made.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))
        rows, weight = torch.randn(9, 4), torch.randn(5, 4, 6)
        part = module(lambda self, x, w, offs: torch.ops.transformers.grouped_mm_fallback(x, w, offs=offs))
        for ends in ((2, 2, 7, 7, 9), (0, 0, 0, 0, 9), (9, 9, 9, 9, 9), (1, 2, 3, 4, 5), (0, 0, 0, 0, 0)):
            offs = torch.tensor(ends, dtype=torch.int32)
            space = {}
            exec(self.exported(part, x=rows, w=weight, offs=offs), space)
            torch.testing.assert_close(space["Model"]()(rows, weight, offs), grouped(rows, weight, offs))

    def test_grouped_products_of_float32_that_pytorch_does_not_trace(self):
        rows, weight, offs = (
            torch.randn(9, 4),
            torch.randn(3, 4, 8),
            torch.tensor([2, 2, 9], dtype=torch.int32),
        )
        made = module(lambda self, x, w, offs: F.grouped_mm(x, w, offs=offs))
        space = {}
        exec(self.exported(made, x=rows, w=weight, offs=offs), space)
        torch.testing.assert_close(space["Model"]()(rows, weight, offs), made(rows, weight, offs))


def written(x, through_a_view, values):
    """Zeros with `values` in the first half."""
    mask = torch.zeros(8)
    (mask[:4] if through_a_view else mask.unsqueeze(0)[0, :4]).copy_(values(x))
    return mask


class Values(unittest.TestCase):
    """Values of tensors that forward reads."""

    ALLOWED = (
        lambda self, x: x * 2 if (torch.arange(x.shape[1]).diff() == 1).all() else x * 3,
        lambda self, x: x * int(torch.ones(3).sum()),
        lambda self, x: x * 2 if written(x, True, lambda x: torch.ones(4)).sum() > 3 else x * 3,
        lambda self, x: (
            x.view(torch.div(x.shape[0], 2, rounding_mode="trunc"), 2, -1) * int(torch.ones(()) * 2)
        ),
        lambda self, x: x.as_strided(size=[torch.arange(9)[4], 2], stride=(2, 1)) * 2 if torch.ones(1) else x,
        lambda self, x: x + torch.arange(8)[torch.arange(8) > 3].sum().item(),
        lambda self, x: x[:, torch.arange(8)[torch.arange(8) > 3]],
        lambda self, x: x.repeat_interleave(torch.arange(4) + (torch.arange(4) > 0).sum().item(), 0),
    )
    REFUSED = (
        lambda self, x: x * 2 if x.sum() > 0 else x * 3,
        lambda self, x: x * 2 if self.weight.sum() > 0 else x * 3,
        lambda self, x: x * 2 if self.held.sum() > 0 else x * 3,
        lambda self, x: x.view(torch.randint(4, 5, ()), 8),
        lambda self, x: x.as_strided(size=((x[0, 0] * 0 + 2).long(), 2), stride=(2, 1)),
        lambda self, x: x * 2 if torch.rand(1) < 2 else x * 3,
        lambda self, x: x * 2 if written(x, True, lambda x: x[0, :4]).sum() > 0 else x * 3,
        lambda self, x: x * 2 if written(x, False, lambda x: x[0, :4]).sum() > 0 else x * 3,
        lambda self, x: x * 2 if written(x, True, lambda x: torch.rand(4)).sum() > 0 else x * 3,
        lambda self, x: x[:, written(x, True, lambda x: x[0, :4] > 0).bool()],
        lambda self, x: torch.arange(8)[written(x, True, lambda x: x[0, :4] > 0).bool()] + x[0, 0],
        lambda self, x: torch.arange(8)[torch.rand(8) > 0.5].sum() + x,
        lambda self, x: torch.arange(8).repeat_interleave((torch.rand(8) * 3).long()).sum() + x,
        lambda self, x: (
            torch.arange(8).repeat_interleave(written(x, True, lambda x: x[0, :4]).long()).sum() + x
        ),
    )

    def made(self, forward):
        made = module(forward, held=torch.ones(2))
        made.weight = nn.Parameter(torch.ones(3))
        return made.requires_grad_(False)

    def test_those_of_sizes_and_constants_are_known(self):
        for i, forward in enumerate(self.ALLOWED):
            with self.subTest(i):
                made, space = self.made(forward), {}
                exec(_export.export(made, {"x": X}, lambda module, bound: module(**bound)).source, space)
                self.assertTrue(torch.equal(space["Model"]()(X), made(X)))

    def test_assertions(self):
        def asserted(value):
            def forward(self, x):
                torch._assert_async(value(x))
                return x * 2

            made = self.made(forward)
            return _export.export(made, {"x": X}, lambda module, bound: module(**bound)).source

        self.assertNotIn("assert", asserted(lambda x: (torch.arange(x.shape[0]) < 9).all()))
        for value in (lambda x: (x < 99).all(), lambda x: (written(x, True, lambda x: x[0, :4]) < 9).all()):
            with self.assertRaisesRegex(_structure.Unsupported, "an assertion on data"):
                asserted(value)
        with self.assertRaises(_structure.Unsupported):  # it fails in the original, too
            asserted(lambda x: (torch.arange(x.shape[0]) < 3).all())

    def test_others_are_refused(self):
        kinds = (_structure.Unsupported, DataDependentOutputException, DynamicOutputShapeException)
        for i, forward in enumerate(self.REFUSED):
            inputs = _structure.flatten({"x": X}, [])
            flat = _export.program.Flat(self.made(forward), inputs, lambda module, bound: module(**bound), ())
            with self.subTest(i), self.assertRaises(kinds):
                _export.program.Traced(flat, [X])


@dataclasses.dataclass
class Plain:
    a: torch.Tensor
    b: object = None


@dataclasses.dataclass
class Late:
    a: torch.Tensor
    b: object = dataclasses.field(init=False, default=None)


@dataclasses.dataclass
class Counted:
    a: torch.Tensor
    calls: int = 0

    def __post_init__(self):
        self.calls += 1


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: torch.Tensor
    tag: str = "x"


@dataclasses.dataclass(slots=True)
class Slots:
    a: torch.Tensor
    __hidden: int = 3

    def hidden(self):
        return self.__hidden


@dataclasses.dataclass
class Dictionary(collections.OrderedDict):
    """As transformers' ModelOutput."""

    a: torch.Tensor
    b: object = None

    def __post_init__(self):
        self.update(a=self.a)


Point = collections.namedtuple("Point", "x y")


class Named(Point):
    pass


class Structures(unittest.TestCase):
    """Arguments and answers hold again what they held."""

    def again(self, value):
        tensors = []
        description = _structure.flatten(value, tensors)
        self.assertIsNone(_structure.differs("it", description, _structure.flatten(value, [])))
        made = _structure.unflatten(pickle.loads(pickle.dumps(description)), iter(tensors))
        self.assertIs(type(made), type(value))
        return made

    def test_dataclasses(self):
        more = Plain(X, [1, None])
        more.extra = X + 1
        self.assertTrue(torch.equal(self.again(more).extra, X + 1))
        late = Late(X)
        late.b = (X, "t")
        self.assertEqual(self.again(late).b[1], "t")
        self.assertEqual(self.again(Counted(X)).calls, 1)
        self.assertEqual(self.again(Frozen(X, "y")).tag, "y")
        self.assertEqual(self.again(Slots(X)).hidden(), 3)
        made = self.again(Dictionary(X))
        self.assertEqual((list(made), made.b), (["a"], None))

    def test_a_guard_sees_all_that_they_hold(self):
        late, other = Late(X), Late(X)
        late.b, other.b = 2.0, 3.0
        found = _structure.differs("it", _structure.flatten(late, []), _structure.flatten(other, []))
        self.assertIn("expected 2.0, got 3.0", found)

    def test_dictionaries(self):
        made = self.again(collections.defaultdict(list, a=X))
        made["new"].append(1)
        self.assertEqual(list(made), ["a", "new"])
        ordered = collections.OrderedDict(b=X, a=X)
        self.assertEqual(list(self.again(ordered)), ["b", "a"])
        self.assertEqual(self.again(Point(X, 1)).y, 1)
        self.assertEqual(self.again(Named(X, 1)).y, 1)

    def test_what_cannot_be_made_again_is_refused(self):
        named, extended = Named(X, 1), Dictionary(X)
        named.note = extended.note = "more"
        for value in (named, extended, collections.defaultdict(lambda: 0, a=X)):
            with self.assertRaises(_structure.Unsupported):
                _structure.flatten(value, [])


class Module(unittest.TestCase):
    """What nn.Module keeps in attributes of its own."""

    def test_backward_hooks_of_the_whole(self):
        made = nn.Linear(8, 8)
        fast = nereid.Optimized(made, plan.Plan())
        seen = []
        fast.register_full_backward_hook(lambda *_: seen.append(1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fast(X.clone().requires_grad_()).sum().backward()
        self.assertEqual(seen, [1])

    def test_compile_in_place_leaves_the_original_alone(self):
        made = nn.Linear(8, 8)
        fast = nereid.Optimized(made, plan.Plan())
        fast.compile(backend="eager")
        self.assertIsNone(made._compiled_call_impl)
        with torch.no_grad():
            torch.testing.assert_close(fast(X), made(X))
        pickle.loads(pickle.dumps(copy.deepcopy(fast)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
