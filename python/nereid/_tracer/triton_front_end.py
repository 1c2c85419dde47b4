"""Triton without a GPU: kernels go through the front end and the ttir stage, launches are recorded.

`install` gives Triton a driver of ours and a `compile` that stops at TTIR; `session` is who takes the
launches. A compiled kernel here is a text with the rule that maps Python's arguments to the text's
parameters.
"""

import contextlib
import hashlib
import json
import math
import types

import torch
import triton
import triton.compiler
import triton.compiler.compiler
import triton.testing
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.compiler import make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import get_jit_fn_file_line

from . import streams
from .address_tables import AddressTables
from .._task.errors import KernelDoesNotCompile, Untraceable
from .._task.source import display_name

TARGET = GPUTarget("cuda", 90, 32)
DEVICE_PROPERTIES = {
    "max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
    "sm_clock_rate": 1980000, "mem_clock_rate": 3201000, "mem_bus_width": 6144,
}  # fmt: skip
# What the driver would know after compiling; here guesses that keep occupancy arithmetic of host code
# sensible.
ASSUMED_REGISTERS, ASSUMED_SHARED_BYTES = 64, 16384
MOST_PROGRAMS = (2**31 - 1, 65535, 65535)  # that CUDA launches, by dimension
MOST_THREADS, MOST_CTAS = 1024, 16  # of a program, of a cluster
# Options that do not decide the machine code, or are given by where it will run.
_IGNORED_OPTIONS = frozenset("arch backend_name extern_libs ir_override supported_fp8_dtypes "
                             "deprecated_fp8_dot_operand_dtypes "
                             "allowed_dot_input_precisions max_num_imprecise_acc_default warp_size "
                             "instrumentation_mode".split())  # fmt: skip

# Options that name files, or are arguments of other programs.
_REFUSED_OPTIONS = {"ir_override": "a kernel's text must come from its Python source",
                    "extern_libs": "a kernel is linked with libdevice and nothing else",
                    "ptx_options": "the assembler is given no arguments of a candidate's"}  # fmt: skip


class Session:
    """Where launches go while a module is traced."""

    def __init__(self, recorder, pointers):
        self.recorder, self.pointers = recorder, pointers
        self.kernels, self._kernel_ids = [], {}
        self.compiled = []
        self.collecting = None  # a list while an autotuner tries configurations: launches go there

    def kernel_id(self, encoded):
        key = (encoded["hash"], encoded["name"])
        id = self._kernel_ids.get(key)
        if id is None:
            id = self._kernel_ids[key] = len(self.kernels)
            self.kernels.append(encoded)
        return id

    def launch(self, kernel, grid, values):
        grid = [_grid_size(size) for size in (*grid, 1, 1)[:3]]
        _check_limits(kernel, grid)
        tensors = []
        args = LaunchArguments(self, tensors).encode(kernel.parameters, values)
        encoded = kernel.encoded
        if kernel.makes_pointers:
            encoded, args = self._with_tables(encoded, args, tensors)
        alternative = {"kernel": self.kernel_id(encoded), "grid": grid, "args": args}
        if min(grid) == 0:
            return  # Triton's launcher does nothing then
        if self.collecting is not None:
            self.collecting.append((alternative, tensors))
        else:
            self.recorder.launch([alternative], tensors)

    def _with_tables(self, encoded, args, tensors):
        """A kernel that makes pointers of what tables hold, and its arguments, with the tables' tensors among
        them."""
        tables = AddressTables(self.recorder, self.pointers)
        resolved = tables.resolve(encoded["ttir"], args, tensors)
        if resolved is None:
            return encoded, args
        text, args = resolved
        digest = hashlib.sha256(f"{encoded['hash']}\0{text}".encode()).hexdigest()
        return {**encoded, "ttir": text, "hash": digest}, args


session = None


def set_session(new):
    global session
    session = new


def _check_limits(kernel, grid):
    """Raises what a launch raises that no GPU takes."""
    if 32 * kernel.num_warps > MOST_THREADS:
        raise OutOfResources(32 * kernel.num_warps, MOST_THREADS, "threads")
    if kernel.num_ctas > MOST_CTAS:
        raise OutOfResources(kernel.num_ctas, MOST_CTAS, "CTAs of a cluster")
    if any(size > most for size, most in zip(grid, MOST_PROGRAMS)):
        raise RuntimeError(
            f"Triton Error [CUDA]: invalid argument: a grid of {grid}, at most {list(MOST_PROGRAMS)} programs"
        )


def _grid_size(size):
    if isinstance(size, torch.Tensor):
        return int(size)
    size = getattr(size, "value", size)
    return int(size)


class LaunchArguments:
    """Python's arguments as the values of a TTIR function's parameters."""

    def __init__(self, session, tensors):
        self._session, self._tensors = session, tensors

    def encode(self, parameters, values):
        out = []
        for path, kind in parameters:
            value = values[path[0]]
            for index in path[1:]:
                value = value[index]
            out.append(self._one(kind, value))
        return out

    def _one(self, kind, value):
        value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
        if kind[0] == "*":
            return self._pointer(value)
        if kind.startswith("tensordesc"):
            return self._descriptor(value)
        if kind in ("fp16", "bf16", "fp32", "f32", "fp64"):
            value = float(value)
            return {
                "x": (
                    value
                    if math.isfinite(value)
                    else ("nan" if value != value else "inf" if value > 0 else "-inf")
                )
            }
        value = int(value)
        return {"i": value - 2**64 if value >= 2**63 else value}

    def _pointer(self, value):
        if value is None or (isinstance(value, int) and value == 0):
            return {"p": -1, "o": 0}
        if isinstance(value, torch.Tensor):
            return {"p": self._view(value), "o": 0}
        if isinstance(getattr(value, "base", None), torch.Tensor):  # triton.reinterpret
            return {"p": self._view(value.base), "o": 0}
        address = value if isinstance(value, int) else value.data_ptr()
        if address == 0:
            return {"p": -1, "o": 0}
        tensor, offset = self._session.pointers.resolve(address)
        self._tensors.append(tensor)
        return {"p": self._session.recorder.value_of(tensor), "o": offset}

    def _view(self, tensor):
        recorder = self._session.recorder
        adopted = recorder.adopt(tensor)
        if adopted is None:
            raise Untraceable(f"a kernel was given a {type(tensor).__name__} that has no storage")
        if adopted.fake_device.type == "cpu":
            raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?)")
        self._tensors.append(adopted)
        return recorder.value_of(adopted)

    def _descriptor(self, descriptor):
        return {
            "desc": self._view(descriptor.base), "shape": [int(n) for n in descriptor.shape],
            "strides": [int(n) for n in descriptor.strides],
            "block": [int(n) for n in descriptor.block_shape],
            "nan": getattr(descriptor, "padding", "zero") == "nan",
        }  # fmt: skip


class Kernel:
    """What `triton.compile` answers here: looks like triton's CompiledKernel as far as host code uses one."""

    def __init__(self, source, text, options):
        self.src = source
        self.name = source.fn.__name__
        self.encoded = _encode(source, text, options)
        self.parameters = list(_runtime_parameters(tuple(source.signature.values())))
        self.makes_pointers = "tt.int_to_ptr" in text
        self.hash = self.encoded["hash"]
        fields = {**options.__dict__, "name": self.name, "hash": self.hash, "target": TARGET,
                  "shared": ASSUMED_SHARED_BYTES,
                  "cluster_dims": (options.num_ctas, 1, 1), "tmem_size": 0, "global_scratch_size": 0,
                  "global_scratch_align": 1}  # fmt: skip
        self.metadata = types.SimpleNamespace(**fields)
        self.packed_metadata = (options.num_warps, options.num_ctas, ASSUMED_SHARED_BYTES)
        self.asm = {"ttir": text, "source": text, "ttgir": "", "llir": "", "ptx": "", "cubin": b""}
        self.module = self.function = self.kernel = 1
        self.n_regs, self.n_spills, self.n_max_threads = ASSUMED_REGISTERS, 0, 1024
        self.shared = ASSUMED_SHARED_BYTES
        self.num_warps, self.num_ctas, self.num_stages = (
            options.num_warps,
            options.num_ctas,
            options.num_stages,
        )

    def _init_handles(self):
        pass

    def launch_metadata(self, grid, stream, *args):
        return None

    def run(
        self,
        grid_0,
        grid_1,
        grid_2,
        stream,
        function,
        packed_metadata,
        launch_metadata,
        enter_hook,
        exit_hook,
        *args,
    ):
        with streams.StreamContext(streams.external(stream)):
            session.launch(self, (grid_0, grid_1, grid_2), args)

    def __getitem__(self, grid):
        def runner(*args, stream=None):
            # triton's own runner takes every parameter, constexpr ones too, or the run-time ones alone
            if len(args) != len(self.src.fn.arg_names):
                given, args = list(args), []
                for name, kind in self.src.signature.items():
                    args.append(None if kind == "constexpr" else given.pop(0))
            with streams.StreamContext(streams.external(stream) if stream is not None else None):
                session.launch(self, grid, args)

        return runner


def _runtime_parameters(signature, path=()):
    """(path, type) of each parameter that the TTIR function has: constexpr ones, and integers that are 1, are
    not among them."""
    for index, kind in enumerate(signature):
        if isinstance(kind, tuple):
            yield from _runtime_parameters(kind, (*path, index))
        elif kind != "constexpr":
            yield (*path, index), kind


def _encode(source, text, options):
    numbers, texts = {}, {}
    for name, value in options.__dict__.items():
        if name in _IGNORED_OPTIONS or value is None or value == "":
            continue
        if isinstance(value, (bool, int)):
            numbers[name] = int(value)
        else:
            texts[name] = str(value)
    function = source.fn
    file, line = get_jit_fn_file_line(function)
    names = function.arg_names
    constants = [
        [".".join([names[path[0]], *map(str, path[1:])]), _text(value)]
        for path, value in sorted(source.constants.items())
    ]
    digest = hashlib.sha256(f"{text}\0{json.dumps([numbers, texts], sort_keys=True)}".encode()).hexdigest()
    return {"name": function.fn.__name__, "ttir": text, "hash": digest, "options": numbers,
            "text_options": texts,
            "constants": constants, "at": [display_name(file), line], "source": function._src}  # fmt: skip


def _text(value):
    value = getattr(value, "value", value)
    text = getattr(value, "__name__", None) if callable(value) else None
    return (text or str(value))[:1000]


_backend = None
_contexts = []  # made before a fork, for each child's first kernels: dialects take over 1 ms


def _new_context():
    global _backend
    if _backend is None:
        _backend = make_backend(TARGET)
    context = ir.context()
    ir.load_dialects(context)
    _backend.load_dialects(context)
    return context


def _context():
    if _texts is None:
        return _contexts.pop() if _contexts else _new_context()
    if not _contexts:
        _contexts.append(_new_context())
    return _contexts[-1]  # many kernels in one: dialects take as long to load as a small kernel


def make_contexts(count=4):
    _contexts.extend(_new_context() for _ in range(count - len(_contexts)))


_texts = (
    None  # while several files of one author are traced: TTIR by what Triton's own cache would know it by
)


@contextlib.contextmanager
def remembering():
    """A kernel that stands in several files at the same line goes through the front end once."""
    global _texts
    _texts = {}
    try:
        yield
    finally:
        _texts = None


def compile(src, target=None, options=None, _env_vars=None):
    global _backend
    if not hasattr(src, "fn"):
        raise Untraceable("triton.compile of a file: only kernels written in Python are traced")
    if src.ext != "ttir":  # Gluon's sources begin at layouts, below what is traced
        raise Untraceable("Gluon kernels are not supported yet")
    if _backend is None:
        _backend = make_backend(TARGET)
    backend = _backend
    options = backend.parse_options(dict(options or {}))
    usual = backend.parse_options({})
    for name, why in _REFUSED_OPTIONS.items():
        if getattr(options, name) != getattr(usual, name):
            raise Untraceable(f"the launch option {name}: {why}")
    key = (
        (src.hash(), display_name(get_jit_fn_file_line(src.fn)[0]), options.hash())
        if _texts is not None
        else None
    )
    if key is not None and key in _texts:
        return Kernel(src, _texts[key], options)
    context = _context()
    try:
        module = src.make_ir(
            TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
        module = backend.make_ttir(module, {}, options, TARGET.arch)
    except Exception as error:
        if getattr(error, "nereid_kernel", None) is None and not isinstance(error, Untraceable):
            error.nereid_kernel = describe_failure(src.fn, error)
        raise
    session.compiled.append((context, module))  # not taken apart while the trace is made
    text = str(module)
    if key is not None:
        _texts[key] = text
    return Kernel(src, text, options)


def describe_failure(function, error):
    """The innermost compilation error of a chain, as KernelDoesNotCompile: kernel, message, file, line,
    code."""
    file, begin = get_jit_fn_file_line(function)
    innermost, seen = None, 0
    cause = error
    while cause is not None and seen < 20:
        if isinstance(cause, CompilationError):
            innermost = cause
        cause, seen = (
            cause.__cause__ or (cause.__context__ if not cause.__suppress_context__ else None),
            seen + 1,
        )
    root = innermost if innermost is not None else error
    line, code = begin, function.raw_src[0].strip() if function.raw_src else ""
    if innermost is not None and hasattr(innermost.node, "lineno") and innermost.src:
        lines = innermost.src.split("\n")
        if innermost.src == function.src:
            line = begin + innermost.node.lineno - 1
        code = lines[innermost.node.lineno - 1].strip() if innermost.node.lineno <= len(lines) else ""
    message = (getattr(root, "error_message", None) if innermost is not None else None) or ""
    deepest = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    if not message:
        message = (
            f"{type(deepest).__name__}: {deepest}"
            if not isinstance(deepest, CompilationError)
            else str(deepest)
        )
    return KernelDoesNotCompile(function.fn.__name__, message[:4000], display_name(file), line, code[:400])


class Driver(DriverBase):
    binary_ext = "cubin"

    class utils:
        @staticmethod
        def load_binary(*args):
            return (1, 1, ASSUMED_REGISTERS, 0, 1024)

        @staticmethod
        def get_device_properties(device=0):
            return dict(DEVICE_PROPERTIES)

        @staticmethod
        def fill_tma_descriptor(*args):
            raise Untraceable("a tensor map filled by hand")

    def __init__(self):
        pass

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, ty):
        return ty

    def launcher_cls(self, *args):
        raise Untraceable("a launcher made by hand")

    def get_current_target(self):
        return TARGET

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None):
        return streams.current().cuda_stream

    def get_device_capability(self, device=None):
        return (9, 0)

    def get_active_torch_device(self):
        return torch.device("cuda", 0)

    def get_device_interface(self):
        return torch.cuda

    def get_benchmarker(self):
        return bench

    def get_empty_cache_for_benchmark(self):
        return torch.empty(1 << 20, dtype=torch.int8, device="cuda")

    def clear_cache(self, cache):
        pass

    def assemble_tensormap_to_arg(self, tensormaps_info, args):
        return args


def bench(fn, *args, quantiles=None, return_mode="mean", **kwargs):
    """There is no clock here: the function runs once, and all takes one millisecond."""
    fn()
    if quantiles is not None:
        return [1.0] * len(quantiles)
    return [1.0] if return_mode == "all" else 1.0


def install():
    triton.runtime.driver.set_active(Driver())
    triton.compile = triton.compiler.compile = triton.compiler.compiler.compile = compile
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = bench
    from . import autotuner, triton_speed

    triton_speed.install()
    autotuner.install()
