"""Kernel launches that are prepared once and issued by native code: one call for all of a plan.

Written files use it where this package is installed (_written/direct.py); without it they launch kernel by
kernel through Triton's launcher. The native part is libnereid_launch.so (src/nereid/gpu/launch_plan.h)."""

import ctypes
import functools
import struct
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
PLACES = (_PACKAGE / "bin", _PACKAGE.parents[1] / "build" / "release" / "bin")  # a wheel's, a checkout's
_MOST_PARAMETERS = 256
NO_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT: the calling thread has not used the GPU yet
# Of Triton's scalar types, how a value becomes the first bytes of a parameter.
_INTEGERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (1, 8, 16, 32, 64)}
_FLOATS = {"fp32": "<f", "f32": "<f", "fp64": "<d", "f64": "<d"}


class _Parameter(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64), ("slot", ctypes.c_int64)]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("threads", ctypes.c_uint32),
        ("shared_bytes", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("parameters", ctypes.c_uint32),
        ("parameter", ctypes.POINTER(_Parameter)),
    ]


class _Plan(ctypes.Structure):
    _fields_ = [
        ("launch_kernel_ex", ctypes.c_void_p),
        ("launch", ctypes.POINTER(_Launch)),
        ("launches", ctypes.c_uint32),
    ]


@functools.cache
def library():
    """The native part; None where it is missing."""
    for place in PLACES:
        try:
            found = ctypes.CDLL(str(place / "libnereid_launch.so"))
        except OSError:
            continue
        found.nereid_launch.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p]
        found.nereid_launch.restype = ctypes.c_int
        return found
    return None


@functools.cache
def entry():
    """The address of the CUDA driver's cuLaunchKernelEx; None where there is no such driver."""
    try:
        function = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    except (OSError, AttributeError):
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


def available():
    return library() is not None and entry() is not None


def parameter(kind, value):
    """(value, slot -1) of a scalar of Triton's type `kind`; None where its bytes are not known here."""
    if kind in _INTEGERS:
        return int(value) & (2**64 - 1), -1
    if kind in _FLOATS:
        return int.from_bytes(struct.pack(_FLOATS[kind], value), "little"), -1
    return None


class Plan:
    """Launches in order. Each is (function, grid, threads, shared bytes, cooperative, parameters), parameters
    are (value, slot): a number, or an offset in bytes from pointer `slot`."""

    def __init__(self, launches, slots):
        if any(len(launch[-1]) + 2 > _MOST_PARAMETERS for launch in launches):
            raise ValueError(f"a kernel has more than {_MOST_PARAMETERS - 2} parameters")
        self.kept = []
        array = (_Launch * len(launches))()
        for one, (function, grid, threads, shared, cooperative, parameters) in zip(array, launches):
            parameters = [*parameters, (0, -1), (0, -1)]  # Triton's global and profile scratch
            given = (_Parameter * len(parameters))(*parameters)
            self.kept.append(given)
            one.function, one.grid[:], one.threads, one.shared_bytes = function, grid, threads, shared
            one.cooperative, one.parameters, one.parameter = int(cooperative), len(parameters), given
        self.plan = _Plan(entry(), array, len(launches))
        self.kept.append(array)
        self.address = ctypes.addressof(self.plan)
        self.pack = struct.Struct(f"{slots}Q").pack


def failed(code):
    """Raises what a launch's error code says."""
    name = ctypes.c_char_p()
    ctypes.CDLL("libcuda.so.1").cuGetErrorName(code, ctypes.byref(name))
    said = name.value.decode() if name.value else "unknown"
    raise RuntimeError(f"CUDA error {code} ({said}) at a kernel launch")
