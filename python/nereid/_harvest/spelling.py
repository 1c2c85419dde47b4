"""PyTorch calls and Python values as text."""

import enum
import functools
import inspect
import math
import re

import torch
import torch.nn.functional as F
from torch import nn

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "pow": "**", "true_divide": "/",
    "floor_divide": "//", "remainder": "%",
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__matmul__": "@", "__pow__": "**",
    "__and__": "&", "__or__": "|",
    "__xor__": "^", "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "__eq__": "==",
    "__ne__": "!=", "__lt__": "<",
    "__gt__": ">", "__le__": "<=", "__ge__": ">=", "__mod__": "%", "__floordiv__": "//",
}  # fmt: skip
REFLECTED = {"__radd__": "+", "__rsub__": "-", "__rmul__": "*", "__rtruediv__": "/", "__rdiv__": "/",
             "__rpow__": "**", "__rmatmul__": "@",
             "rsub": "-"}  # fmt: skip
RANDOM = re.compile(
    r"^(rand|bernoulli|multinomial|normal_?$|uniform_|exponential_|dropout|alpha_dropout|feature_"
    r"|gumbel_softmax|rrelu|poisson)"
)
IDENTITY = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_MODULES = (
    ("F", F),
    ("torch", torch),
    ("torch.fft", torch.fft),
    ("torch.linalg", torch.linalg),
    ("torch.special", torch.special),
)


class NoText(Exception):
    """A value or a call that has no text."""


@functools.cache
def _names():
    """Text of every PyTorch function, and names of methods, by the function."""
    functions, methods = {}, {}
    for prefix, module in reversed(_MODULES):
        for name, value in vars(module).items():
            if callable(value) and not name.startswith("_") and not inspect.isclass(value):
                _put(functions, value, f"{prefix}.{name}")
    for name in dir(torch.Tensor):
        value = getattr(torch.Tensor, name)
        if callable(value) and (not name.startswith("_") or name in INFIX or name in REFLECTED or name in
                                ("__getitem__", "__setitem__", "__neg__", "__invert__")):  # fmt: skip
            _put(methods, value, name)
    return functions, methods


def _put(table, key, value):
    try:
        table[key] = value
    except TypeError:
        pass


def name_of(function):
    """("function", "F.relu"), ("method", "view") or ("attribute", "T"); NoText for what is none of these."""
    functions, methods = _names()
    try:
        if function in functions:
            return "function", functions[function]
        if function in methods:
            return "method", methods[function]
    except TypeError:
        pass
    if getattr(function, "__name__", "") == "__get__":
        name = getattr(getattr(function, "__self__", None), "__name__", "")
        if name in ("T", "mT", "H", "mH", "real", "imag", "data"):
            return "attribute", name
    raise NoText(f"no spelling of {getattr(function, '__name__', function)!r}")


def is_random(name):
    return RANDOM.match(name.rpartition(".")[2]) is not None


def literal(value, reference=None):
    """Text of a value that needs no import but torch and nn; `reference` gives the text of a reference."""
    if reference is not None and (text := reference(value)) is not None:
        return text
    if value is None or isinstance(value, (bool, str)) and not isinstance(value, enum.Enum):
        return repr(value)
    if value is Ellipsis:
        return "..."
    if isinstance(value, enum.Enum):
        raise NoText("an enumeration")
    if isinstance(value, (int, torch.SymInt)) and not isinstance(value, torch.SymInt):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f'float("{value}")'
    if isinstance(value, slice):
        raise NoText("a slice outside of brackets")
    if type(value) in (tuple, torch.Size):
        items = [literal(v, reference) for v in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if type(value) is list:
        return f"[{', '.join(literal(v, reference) for v in value)}]"
    if isinstance(value, dict):
        items = (f"{literal(k, reference)}: {literal(v, reference)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return str(value)
    if isinstance(value, functools.partial):
        raise NoText("a partial function")
    if inspect.isclass(value) and getattr(nn, value.__name__, None) is value:
        return f"nn.{value.__name__}"
    raise NoText(f"a value of type {type(value).__name__}")


def index_text(index, reference):
    """What is between the brackets of x[...]."""

    def part(value):
        if isinstance(value, slice):
            ends = ["" if v is None else literal(v, reference) for v in (value.start, value.stop, value.step)]
            return f"{ends[0]}:{ends[1]}" + (f":{ends[2]}" if ends[2] else "")
        return literal(value, reference)

    if type(index) is tuple:
        return ", ".join(map(part, index)) or "()"
    return part(index)


def call_text(function, args, kwargs, reference):
    """Text of a call; references to tensors by `reference`."""
    kind, name = name_of(function)
    if is_random(name):
        raise NoText(f"{name} draws random numbers")
    if kind == "attribute":
        return f"{reference(args[0])}.{name}"
    kwargs = {
        k: v for k, v in kwargs.items() if k not in ("inplace", "out") and not (k == "pin_memory" and not v)
    }
    device = kwargs.pop("device", None)
    short = name.rpartition(".")[2]
    if short == "to" and any(isinstance(a, torch.device) for a in args):
        args = tuple(a for a in args if not isinstance(a, torch.device))
    if kind == "method":
        if name in ("__getitem__",):
            return f"{reference(args[0])}[{index_text(args[1], reference)}]"
        if name == "__neg__" or name == "neg" and len(args) == 1:
            return f"-{reference(args[0])}"
        if name == "__invert__":
            return f"~{reference(args[0])}"
        if len(args) == 2 and not kwargs and (name in INFIX or name in REFLECTED):
            left, right = (literal(a, reference) for a in args)
            if name in REFLECTED:
                return f"{right} {REFLECTED[name]} {left}"
            return f"{left} {INFIX[name]} {right}"
        if name.startswith("__"):
            raise NoText(name)
        if name.endswith("_"):
            name = name[:-1]
            if not hasattr(torch.Tensor, name):
                raise NoText(f"{name}_ in place")
        if name in (
            "numpy",
            "tolist",
            "item",
            "cpu",
            "cuda",
            "register_hook",
            "requires_grad",
            "backward",
            "copy",
        ):
            raise NoText(name)
        texts = [literal(a, reference) for a in args[1:]]
        texts += [f"{k}={literal(v, reference)}" for k, v in kwargs.items()]
        return f"{reference(args[0])}.{name}({', '.join(texts)})"
    if short.endswith("_") and hasattr(torch, short[:-1]):
        name = name[:-1]
    args, kwargs = _without_inplace(function, short, args, kwargs)
    texts = [literal(a, reference) for a in args]
    texts += [f"{k}={literal(v, reference)}" for k, v in kwargs.items()]
    if device is not None and not any_reference(args, kwargs):
        raise NoText("made on a device, from no tensor")
    return f"{name}({', '.join(texts)})"


def _without_inplace(function, short, args, kwargs):
    """F.relu(x, True) without its second argument."""
    if short in (
        "relu",
        "relu6",
        "silu",
        "mish",
        "hardswish",
        "hardsigmoid",
        "selu",
        "celu",
        "elu",
        "leaky_relu",
        "hardtanh",
        "threshold",
    ):
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        given = {k: v for k, v in bound.arguments.items() if k != "inplace"}
        first = next(iter(given))
        return (given.pop(first),), given
    return args, kwargs


def any_reference(*values):
    from .recording import Ref

    return any(isinstance(leaf, Ref) for leaf in torch.utils._pytree.tree_leaves(list(values)))
