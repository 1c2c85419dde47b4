"""Modules of torch that take seconds to import and are hardly ever needed in a trace, where nothing is
compiled and every size is a number: until something asks for more, light stand-ins are in their places.

`install()` comes before anything that imports them. A stand-in has the few names that traces use all the
time; asked for any other name, or for a submodule, it becomes the module itself.
"""

import contextlib
import importlib.abc
import importlib.util
import sys
import types

import torch


def _is_plain(value):
    """No symbol is in it: the tracer's fake tensors have sizes that are numbers."""
    return (
        value is None
        or isinstance(value, (bool, int, float, torch.Tensor))
        or type(value) in (list, tuple, torch.Size)
        and all(map(_is_plain, value))
    )


def _of_plain(name, answer):
    """`name` of symbolic_shapes: `answer` where no symbol is about, the module's own function for anything
    else."""

    def function(*args, **kwargs):
        if all(map(_is_plain, args)):
            return answer(*args)
        module = sys.modules["torch.fx.experimental.symbolic_shapes"]
        become(module)
        return getattr(module, name)(*args, **kwargs)

    return function


def _unchanged(function=None, *args, **kwargs):
    return (lambda function: function) if function is None else function


NAMES = {
    "torch._dynamo": {
        "disable": _unchanged,
        "allow_in_graph": _unchanged,
        "reset": lambda: None,
        "graph_break": lambda *args, **kwargs: None,
        "compiled_autograd": types.SimpleNamespace(_disable=contextlib.nullcontext),
    },
    "torch._dynamo.utils": {
        "is_compile_supported": lambda device: False
    },  # asked by torchvision when it is imported
    "torch.fx.experimental.symbolic_shapes": {
        name: _of_plain(name, answer)
        for name, answer in {
            "_iterate_exprs": lambda value: iter(()),
            "_iterate_nodes": lambda value: iter(()),
            "_constrain_range_for_size": lambda value, *bounds: None,
            "compute_unbacked_bindings": lambda *args: None,
            "expect_true": lambda value, *frames: value,
            "free_unbacked_symbols": lambda value: set(),
            "guard_int": lambda value: value,
            "guard_or_false": lambda value: value,
            "guard_or_true": lambda value: value,
            "guard_scalar": lambda value: value,
            "guard_size_oblivious": lambda value: value,
            "has_free_symbols": lambda value: False,
            "has_free_unbacked_symbols": lambda value: False,
            "has_hint": lambda value: True,
            "is_nested_int": lambda value: False,
            "is_symbolic": lambda value: False,
            "size_hint": lambda value: value,
            "statically_known_true": lambda value: value,
            "sym_and": lambda *values: all(values),
            "sym_eq": lambda a, b: list(a) == list(b) if isinstance(a, (list, tuple)) else a == b,
            "sym_or": lambda *values: any(values),
        }.items()
    }
    | {"GuardOnDataDependentSymNode": type("GuardOnDataDependentSymNode", (RuntimeError,), {})},
    "sympy": {
        name: type(name, (), {}) for name in ("Basic", "Expr", "Symbol")
    },  # which nothing is an instance of
    "torch.distributed.tensor": {"DTensor": type("DTensor", (torch.Tensor,), {})},
}
LIGHT_SUBMODULES = {"torch._dynamo.config", "torch._dynamo.utils"}  # these come without the rest


class _StandIn(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        become(self)
        return getattr(self, name)


_names = {}  # module: the names that its stand-in has
_lasting = set()  # modules whose stand-in's names stay when it becomes the module


def become(module):
    """The stand-in is executed as what it stood for; references to it are then the module itself."""
    if type(module) is not _StandIn:
        return
    name = module.__name__
    module.__class__ = types.ModuleType
    for own in _names[name]:
        delattr(module, own)
    module.__spec__.loader.exec_module(module)
    if name in _lasting:
        vars(module).update(_names[name])


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        parent = name.rpartition(".")[0]
        if parent in _names and name not in LIGHT_SUBMODULES:
            become(sys.modules[parent])
        return None  # the others find it


def stand_in(name, names, lasting=False):
    """Puts a module with these names where module `name` will be; where it is imported already, nothing but
    those that last."""
    if name in sys.modules:
        if lasting:
            vars(sys.modules[name]).update(names)
        return
    spec = importlib.util.find_spec(name)
    module = _StandIn(name)
    module.__spec__, module.__file__, module.__loader__, module.__package__ = (
        spec,
        spec.origin,
        spec.loader,
        spec.parent,
    )
    if spec.submodule_search_locations is not None:
        module.__path__ = list(spec.submodule_search_locations)
    vars(module).update(names)
    _names[name] = names
    if lasting:
        _lasting.add(name)
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)


def install():
    sys.meta_path.insert(0, _Finder())
    for name, names in NAMES.items():
        stand_in(name, names)
