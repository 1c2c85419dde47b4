"""Python arguments and results to the trace's ARG trees, and back."""

import base64
import collections
import dataclasses
import enum
import importlib
import math
import sys
import types

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._task import source
from . import tracing
from .._task.errors import Untraceable

DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.uint16: "u16",
    torch.int32: "i32",
    torch.uint32: "u32", torch.int64: "i64", torch.uint64: "u64", torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32", torch.float64: "f64", torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz",
    torch.float8_e8m0fnu: "f8e8m0fnu",
    torch.complex32: "c32", torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip
DTYPE_OF_NAME = {name: dtype for dtype, name in DTYPES.items()}
INTEGRAL = frozenset(dtype for dtype, name in DTYPES.items() if name[0] in "iub" and name != "bf16")
MAX_DEPTH = 24
MAX_ITEMS = 1_000_000
_frombuffer = torch.frombuffer  # constants.py puts another in its place


def dtype_name(dtype):
    name = DTYPES.get(dtype)
    if name is None:
        raise Untraceable(f"tensors of type {dtype} cannot be traced")
    return name


def float_arg(value):
    if math.isfinite(value):
        return value
    return {"f": "nan" if value != value else ("inf" if value > 0 else "-inf")}


def device_name(device):
    return "cpu" if device.type == "cpu" else "cuda"


class Encoder:
    """Turns arguments into ARG trees; `value_of` numbers a tensor's view."""

    def __init__(self, value_of):
        self._value_of = value_of
        self.configurations = (
            False  # also objects of libraries' classes, with their properties: what a module is given
        )
        self._simple = {
            type(None): lambda x: None, bool: lambda x: x, str: lambda x: x, float: float_arg,
            int: _checked_int,
            complex: lambda x: {"c": [float_arg(x.real), float_arg(x.imag)]},
            torch.dtype: lambda x: {"dtype": dtype_name(x)},
            torch.device: lambda x: {"device": device_name(x)},
            torch.layout: lambda x: {"layout": str(x).removeprefix("torch.")},
            torch.memory_format: lambda x: {"memory_format": str(x).removeprefix("torch.")},
        }  # fmt: skip

    def __call__(self, x, depth=0):
        simple = self._simple.get(type(x))
        if simple is not None:
            return simple(x)
        if isinstance(x, torch.Tensor):
            value = self._value_of(x)
            return {"v": value} if value is not None else {"opaque": type(x).__name__}
        if depth > MAX_DEPTH:
            return {"opaque": type(x).__name__}
        if depth == 0:
            self._left = MAX_ITEMS
        self._left -= len(x) if isinstance(x, (list, tuple, dict)) else 1
        if self._left < 0:
            raise Untraceable(f"more than {MAX_ITEMS} items in an argument or an output")
        if isinstance(x, list):
            return [self(item, depth + 1) for item in x]
        if isinstance(x, tuple):
            if type(x) is not tuple and hasattr(type(x), "_fields"):
                return self._object(x, "namedtuple", zip(type(x)._fields, x), depth)
            return {"tuple": [self(item, depth + 1) for item in x]}
        if isinstance(x, torch._C.Generator):
            name = generator_name(x)
            return {"generator": name} if name is not None else None
        if isinstance(x, dict):
            items = [(key if type(key) is str else repr(key)[:200], item) for key, item in x.items()]
            if dataclasses.is_dataclass(x):  # a ModelOutput of Hugging Face's: keys and attributes
                return self._object(x, "mapping", items, depth)
            return {"dict": [[key, self(item, depth + 1)] for key, item in items]}
        if isinstance(x, enum.Enum):
            return self._object(x, "enum", [("name", x.name), ("value", x.value)], depth)
        if isinstance(x, int):
            return _checked_int(int(x))
        if isinstance(x, float):
            return float_arg(float(x))
        if isinstance(x, str):
            return str(x)
        fields = self._fields(x)
        if fields is not None:
            return self._object(x, "object", fields, depth)
        if self.configurations and (name := _global_name(x)):
            return {"global": name}
        return {"opaque": type(x).__name__}

    def _fields(self, x):
        """(name, value) of a dataclass, a SimpleNamespace, or an instance of a plain class; None for anything
        else."""
        if isinstance(x, (type, torch.nn.Module)):
            return None
        if dataclasses.is_dataclass(x):
            return [(field.name, getattr(x, field.name, None)) for field in dataclasses.fields(x)]
        own = type(x).__module__ == source.MODULE_NAME
        if not (own or self.configurations or isinstance(x, types.SimpleNamespace)) or isinstance(
            x, BaseException
        ):
            return None
        try:
            held = object.__getattribute__(x, "__dict__")
        except AttributeError:
            return None
        if type(held) is not dict or callable(x) and not own:
            return None
        return [(name, value) for name, value in held.items() if type(name) is str]

    def _object(self, x, kind, items, depth):
        type_ = type(x)
        module = "" if type_.__module__ == source.MODULE_NAME else type_.__module__
        self._left -= 1
        body = {"kind": kind, "type": f"{module}:{type_.__qualname__}"[:400],
                "items": [[str(name), self(item, depth + 1)] for name, item in items]}  # fmt: skip
        computed = self._properties(type_, x, depth) if self.configurations and kind == "object" else []
        if computed:
            body["computed"] = computed
        return {"object": body}

    def _properties(self, type_, x, depth):
        """What properties of a file's own class give: numbers and texts, for a candidate that lacks the
        class."""
        found = []
        for name in dir(type_) if type_.__module__ == source.MODULE_NAME else ():
            if name.startswith("_") or not isinstance(getattr(type_, name, None), property):
                continue
            try:
                value = getattr(x, name)
            except Exception:
                continue
            if isinstance(value, (type(None), bool, int, float, str)):
                found.append([name, self(value, depth + 1)])
        return found


def _global_name(x):
    """ "torch.nn.functional:gelu" of a class or function that a package of PyTorch's has under this name."""
    module, name = getattr(x, "__module__", None), getattr(x, "__qualname__", None)
    if (
        type(module) is not str
        or type(name) is not str
        or module.partition(".")[0] not in ("torch", "math", "operator", "builtins")
    ):
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is x else None


def _checked_int(x):
    if -(2**63) <= x < 2**64:
        return x if x < 2**63 else x - 2**64
    return {"opaque": "int"}


def generator_name(generator):
    """ "cuda:1234#2": device, seed, and which seeding it was; the same text goes on where the last use
    stopped. None for the default one."""
    generator = tracing.generators.get(
        generator._cdata, generator
    )  # the dispatcher makes new Python objects of generators
    name = getattr(generator, "nereid_name", None)
    return name() if name is not None else f"{generator.device.type}:{generator.initial_seed()}#0"


def decode(arg, tensor_of):
    """The Python value of an ARG tree; `tensor_of` makes the tensor of a value id."""
    if isinstance(arg, list):
        return [decode(item, tensor_of) for item in arg]
    if not isinstance(arg, dict):
        return arg
    ((kind, body),) = arg.items()
    if kind == "v":
        return tensor_of(body)
    if kind == "f":
        return float(body)
    if kind == "c":
        return complex(*body)
    if kind == "tuple":
        return tuple(decode(item, tensor_of) for item in body)
    if kind == "dict":
        return {key: decode(item, tensor_of) for key, item in body}
    if kind == "dtype":
        return DTYPE_OF_NAME[body]
    if kind == "device":
        return torch.device(body)
    if kind in ("layout", "memory_format"):
        return getattr(torch, body)
    if kind == "object":
        return _made_object(body, tensor_of)
    if kind == "global":
        return _named(*body.split(":"))
    if kind == "opaque":
        return None
    raise ValueError(f"an argument of kind {kind!r} cannot be given to a module")


def _named(module, qualname):
    found = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def _class_named(name):
    """The class of an object as the file at hand has it, or a package; None where there is none."""
    module, _, qualname = name.rpartition(":")
    try:
        found = _named(module or source.MODULE_NAME, qualname)
    except Exception:  # whatever a package raises when it is imported
        return None
    return found if isinstance(found, type) else None


def _made_object(body, tensor_of):
    """An object with these fields. Its class is the one that the file at hand, or a package, has under its
    name, and is made without its constructor; without one it is a SimpleNamespace, or a namedtuple of that
    name."""
    kind, cls = body["kind"], _class_named(body["type"])
    items = {name: decode(item, tensor_of) for name, item in body["items"]}
    name = body["type"].rpartition(":")[2].rpartition(".")[2]
    if kind == "namedtuple":
        if cls is None or getattr(cls, "_fields", None) != tuple(items):
            cls = collections.namedtuple(name, list(items))
        return tuple.__new__(cls, items.values())
    if kind == "enum":
        if cls is not None and issubclass(cls, enum.Enum) and items["name"] in cls.__members__:
            return cls[items["name"]]
        return types.SimpleNamespace(**items)
    if kind == "mapping":
        return cls(**items) if cls is not None else items
    computed = {name: decode(item, tensor_of) for name, item in body.get("computed", ())}
    if cls is None or cls is types.SimpleNamespace:
        return types.SimpleNamespace(**computed | items)
    made = object.__new__(cls)
    for name, item in items.items():
        object.__setattr__(made, name, item)
    return made


def bytes_of(storage):
    """The content of a real CPU storage."""
    count = storage.nbytes()
    if count == 0:
        return b""
    import ctypes

    return ctypes.string_at(storage.data_ptr(), count)


def base64_of(storage):
    return base64.b64encode(bytes_of(storage)).decode()


def storage_of_base64(text, count):
    """A real CPU storage of `count` bytes."""
    raw = base64.b64decode(text)
    if len(raw) != count:
        raise ValueError(f"a storage of {count} bytes came with {len(raw)} bytes of data")
    if count == 0:
        return torch.UntypedStorage(0)
    with _disable_current_modes():
        return _frombuffer(bytearray(raw), dtype=torch.uint8).clone().untyped_storage()
