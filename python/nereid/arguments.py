"""Python arguments and results to the trace's ARG trees, and back."""
import base64
import dataclasses
import math

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import tracing
from .errors import Untraceable

DTYPES = {
    torch.bool: "bool", torch.uint8: "u8", torch.int8: "i8", torch.int16: "i16", torch.uint16: "u16", torch.int32: "i32",
    torch.uint32: "u32", torch.int64: "i64", torch.uint64: "u64", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float32: "f32", torch.float64: "f64", torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz", torch.float8_e8m0fnu: "f8e8m0fnu",
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
        self._simple = {
            type(None): lambda x: None, bool: lambda x: x, str: lambda x: x, float: float_arg, int: _checked_int,
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
            return {"tuple": [self(item, depth + 1) for item in x]}
        if isinstance(x, torch._C.Generator):
            name = generator_name(x)
            return {"generator": name} if name is not None else None
        if isinstance(x, dict):
            return {"dict": [[key if type(key) is str else repr(key)[:200], self(item, depth + 1)] for key, item in x.items()]}
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            fields = [field.name for field in dataclasses.fields(x)]
            return {"dict": [[name, self(getattr(x, name, None), depth + 1)] for name in fields]}
        if isinstance(x, int):
            return _checked_int(int(x))
        if isinstance(x, float):
            return float_arg(float(x))
        if isinstance(x, str):
            return str(x)
        return {"opaque": type(x).__name__}


def _checked_int(x):
    if -(2**63) <= x < 2**64:
        return x if x < 2**63 else x - 2**64
    return {"opaque": "int"}


def generator_name(generator):
    """"cuda:1234#2": device, seed, and which seeding it was; the same text goes on where the last use stopped. None for the default one."""
    generator = tracing.generators.get(generator._cdata, generator)  # the dispatcher makes new Python objects of generators
    name = getattr(generator, "nereid_name", None)
    return name() if name is not None else f"{generator.device.type}:{generator.initial_seed()}#0"


def decode(arg, tensor_of):
    """The Python value of an ARG tree; `tensor_of` makes the tensor of a value id."""
    if isinstance(arg, list):
        return [decode(item, tensor_of) for item in arg]
    if not isinstance(arg, dict):
        return arg
    (kind, body), = arg.items()
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
    if kind == "opaque":
        return None
    raise ValueError(f"an argument of kind {kind!r} cannot be given to a module")


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
