"""torch.cuda without a GPU: queries answer an H200's properties, streams and events say what waits for what
(streams.py), graphs record and repeat.
"""

import contextlib
import types

import torch

from . import generator_states, streams, tracing
from .._task.errors import Untraceable

TOTAL_MEMORY = 150_754_820_096
_FREE_MEMORY = 150_000_000_000


class DeviceProperties(types.SimpleNamespace):
    pass


PROPERTIES = DeviceProperties(
    name="NVIDIA H200", major=9, minor=0, total_memory=TOTAL_MEMORY, multi_processor_count=132, warp_size=32,
    max_threads_per_multi_processor=2048, max_threads_per_block=1024, regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472, L2_cache_size=62914560,
    is_integrated=0,
    is_multi_gpu_board=0, gcnArchName="", clock_rate=1980000, memory_clock_rate=3201000,
    memory_bus_width=6144, uuid="",
    pci_bus_id=0, pci_device_id=0, pci_domain_id=0,
)  # fmt: skip


class Graph:
    """A captured graph: capturing does no work, each replay does what was captured."""

    def __init__(self, *args, **kwargs):
        self._captured, self._capturing = None, None
        tracing.note("a CUDA graph was made")

    def capture_begin(self, *args, **kwargs):
        if self._capturing is not None:
            raise RuntimeError("this graph is being captured already")
        self._capturing = tracing.recorder().capture_begin()

    def capture_end(self):
        if self._capturing is None:
            raise RuntimeError("capture_end without capture_begin")
        self._captured = tracing.recorder().capture_end(self._capturing)
        self._capturing = None

    def instantiate(self):
        pass

    def replay(self):
        if self._captured is None:
            raise RuntimeError("replay of a graph that was not captured")
        tracing.recorder().repeat(self._captured)

    def reset(self):
        self._captured = None

    def pool(self):
        return (0, 0)

    def enable_debug_mode(self):
        pass

    def debug_dump(self, path):
        pass

    def register_generator_state(self, generator):
        pass


class CaptureContext:
    """torch.cuda.graph"""

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        self.cuda_graph = cuda_graph

    def __enter__(self):
        self.cuda_graph.capture_begin()

    def __exit__(self, *exception):
        self.cuda_graph.capture_end()
        return False


class DeviceContext:
    """torch.cuda.device and device_of: there is one device."""

    def __init__(self, device=None):
        self.idx = self.prev_idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class MemPool:
    def __init__(self, *args, **kwargs):
        self.id = (0, 0)


class Generator(torch._C.Generator):
    """torch.Generator for either device: a CPU generator that remembers what device, seed and seeding it
    stands for."""

    def __new__(cls, device="cpu"):
        self = super().__new__(cls)
        self._device = torch.device(device)
        self._seeding = tracing.next_seeding()
        tracing.generators[self._cdata] = self
        return self

    def __init__(self, device="cpu"):
        pass

    @property
    def device(self):
        return self._device

    def manual_seed(self, seed):
        super().manual_seed(seed)
        self._seeding = tracing.next_seeding()
        return self

    def seed(self):
        self.manual_seed(tracing.fresh_seed())
        return self.initial_seed()

    def get_state(self):
        return (
            generator_states.save(self, self._device.type)
            if generator_states.tracing_now()
            else super().get_state()
        )

    def set_state(self, state):
        if generator_states.tracing_now():
            generator_states.restore(self, state)
        else:
            super().set_state(state)
        return self

    def clone_state(self):
        return Generator(self._device).set_state(self.get_state())

    def graphsafe_get_state(self):
        raise Untraceable("a random generator's state for CUDA graphs: take it with get_state")

    def graphsafe_set_state(self, state):
        raise Untraceable("a random generator's state for CUDA graphs: put it back with set_state")

    def nereid_name(self):
        return f"{self._device.type}:{self.initial_seed()}#{self._seeding}"


class DefaultGenerator(Generator):
    """torch.default_generator: its seedings are steps of the trace, and to draw from it is to name no
    generator."""

    def manual_seed(self, seed):
        return manual_seed(seed)

    def seed(self):
        return seed()

    def get_state(self):
        return (
            generator_states.save(None, "cpu")
            if generator_states.tracing_now()
            else torch._C.default_generator.get_state()
        )

    def set_state(self, state):
        if not generator_states.tracing_now():
            raise Untraceable("the state of the default generator is put back outside of a phase")
        generator_states.restore(None, state)
        return self

    def nereid_name(self):
        return None


def manual_seed(seed):
    recorder = tracing.recorder()
    seed = int(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    torch._C.Generator.manual_seed(torch.default_generator, seed)
    if recorder is not None and recorder.steps is not None:
        recorder.call("nereid::manual_seed", (seed,))
    return torch.default_generator


def seed():
    value = tracing.fresh_seed()
    manual_seed(value)
    return value


def _get_rng_state(device="cuda"):
    return generator_states.save(None, "cuda") if generator_states.tracing_now() else torch.get_rng_state()


def _set_rng_state(state, device="cuda"):
    torch.default_generator.set_state(state)


def _refuse(what):
    def refuse(*args, **kwargs):
        raise Untraceable(what)

    return refuse


def _nothing(*args, **kwargs):
    return None


def _zero(*args, **kwargs):
    return 0


@contextlib.contextmanager
def _inert_context(*args, **kwargs):
    yield


class CudaRuntime:
    """torch.cuda.cudart()"""

    def __getattr__(self, name):
        if name == "cudaMemGetInfo":
            return lambda device=0: (_FREE_MEMORY, TOTAL_MEMORY)
        if name == "cudaError":
            return types.SimpleNamespace(success=0)
        return _zero


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """As PyTorch's: a warm-up, a capture over the sample arguments; each call copies its arguments there,
    replays, and returns the same outputs."""
    if isinstance(callables, tuple):
        return tuple(
            _graphed(function, args, num_warmup_iters) for function, args in zip(callables, sample_args)
        )
    return _graphed(callables, sample_args, num_warmup_iters)


def _graphed(function, sample_args, warmups):
    from torch.utils._pytree import arg_tree_leaves, tree_flatten, tree_unflatten

    static_inputs = arg_tree_leaves(*sample_args)
    if not all(isinstance(tensor, torch.Tensor) for tensor in static_inputs):
        raise AssertionError(
            "In the beta API, sample_args for each callable must contain only Tensors. Other types are not"
            " allowed."
        )
    for _ in range(warmups):
        function(*sample_args)
    graph = Graph()
    with CaptureContext(graph):
        static_outputs, structure = tree_flatten(function(*sample_args))

    def call(*args):
        for static, given in zip(static_inputs, arg_tree_leaves(*args)):
            if static is not given and static.data_ptr() != given.data_ptr():
                static.copy_(given)
        graph.replay()
        return tree_unflatten([output.detach() for output in static_outputs], structure)

    if not isinstance(function, torch.nn.Module):
        return call
    training, forward = function.training, function.forward
    function.forward = lambda *args, **kwargs: (
        call(*args, **kwargs) if function.training == training else forward(*args, **kwargs)
    )
    return function


class _Generators(tuple):
    pass


def _answers():
    device = torch.device("cuda", 0)
    stats = lambda *args, **kwargs: {}  # noqa: E731
    return {
        "is_available": lambda: True, "is_initialized": lambda: True, "init": _nothing,
        "_lazy_init": _nothing,
        "_is_in_bad_fork": lambda: False, "_lazy_call": lambda function, **kwargs: None,
        "current_device": _zero, "device_count": lambda: 1, "set_device": _nothing,
        "_get_device": lambda d: device,
        "_exchange_device": lambda d: 0, "_maybe_exchange_device": lambda d: 0, "_get_device_index": _zero,
        "synchronize": streams.synchronize, "ipc_collect": _nothing, "_sleep": _nothing,
        "get_device_name": lambda *args: PROPERTIES.name, "get_device_capability": lambda *args: (9, 0),
        "get_device_properties": lambda *args, **kwargs: PROPERTIES,
        "_get_device_properties": lambda *args: PROPERTIES,
        "can_device_access_peer": lambda *args: False, "get_arch_list": lambda: ["sm_90"],
        "get_gencode_flags": lambda: "",
        "is_bf16_supported": lambda *args, **kwargs: True, "is_tf32_supported": lambda: True,
        "_check_bf16_tensor_supported": lambda *args: True, "current_blas_handle": _zero,
        "cudart": CudaRuntime,
        "set_sync_debug_mode": _nothing, "get_sync_debug_mode": _zero,
        "Stream": streams.Stream, "ExternalStream": streams.external, "Event": streams.Event,
        "CUDAGraph": Graph, "graph": CaptureContext,
        "device": DeviceContext, "device_of": DeviceContext, "StreamContext": streams.StreamContext,
        "stream": streams.StreamContext, "set_stream": streams.set_current, "current_stream": streams.current,
        "default_stream": streams.default, "get_stream_from_external": streams.external,
        "_set_stream_by_id": streams.set_by_id,
        "is_current_stream_capturing": lambda: (
            tracing.recorder() is not None and tracing.recorder().capturing),
        "graph_pool_handle": lambda: (0, 0), "make_graphed_callables": make_graphed_callables,
        "MemPool": MemPool, "use_mem_pool": _inert_context,
        "empty_cache": _nothing, "mem_get_info": lambda *args: (_FREE_MEMORY, TOTAL_MEMORY),
        "memory_stats": stats, "memory_stats_as_nested_dict": stats, "host_memory_stats": stats,
        "memory_snapshot": lambda *a, **k: [],
        "memory_summary": lambda *args, **kwargs: "", "list_gpu_processes": lambda *args: "",
        "memory_usage": _zero, "utilization": _zero, "temperature": _zero, "power_draw": _zero,
        "device_memory_used": _zero,
        "clock_rate": lambda *args: 1980, "get_per_process_memory_fraction": lambda *args: 1.0,
        "manual_seed": manual_seed, "manual_seed_all": manual_seed, "seed": seed, "seed_all": seed,
        "initial_seed": _zero, "get_rng_state": _get_rng_state,
        "get_rng_state_all": lambda: [_get_rng_state()],
        "set_rng_state": _set_rng_state,
        "set_rng_state_all": lambda states: [_set_rng_state(state) for state in states] and None,
        **{name: _zero for name in ("memory_allocated max_memory_allocated memory_reserved "
                                    "max_memory_reserved memory_cached "
                                    "max_memory_cached").split()},
        **{name: _nothing for name in ("reset_peak_memory_stats reset_accumulated_memory_stats "
                                       "reset_max_memory_allocated "
                                       "reset_max_memory_cached reset_peak_host_memory_stats "
                                       "set_per_process_memory_fraction").split()},
        "caching_allocator_alloc": _refuse("memory taken from CUDA's allocator by hand"),
        "caching_allocator_delete": _refuse("memory given back to CUDA's allocator by hand"),
        "CUDAPluggableAllocator": _refuse("an allocator of the module's own"),
        "change_current_allocator": _refuse("an allocator of the module's own"),
        "_compile_kernel": _refuse("CUDA C++ kernels"),
    }  # fmt: skip


def _own(value):
    """A function of a name's own: torch._dynamo distinguishes functions by name."""
    if not isinstance(value, types.FunctionType):
        return value
    copy = types.FunctionType(
        value.__code__, value.__globals__, value.__name__, value.__defaults__, value.__closure__
    )
    copy.__kwdefaults__ = value.__kwdefaults__
    return copy


def install():
    torch._C._ensureCUDADeviceGuardSet()
    answers = _answers()
    submodules = [torch.cuda.memory, torch.cuda.random, torch.cuda.streams, torch.cuda.graphs]
    for name, value in answers.items():
        value = _own(value)
        setattr(torch.cuda, name, value)
        for module in submodules:
            if hasattr(module, name):
                setattr(module, name, value)
    torch.cuda._device_t = object
    for name, value in {
        "_cuda_getCurrentRawStream": lambda device=0: streams.current().cuda_stream,
        "_cuda_getDevice": _zero, "_cuda_setDevice": _nothing, "_cuda_exchangeDevice": _zero,
        "_cuda_maybeExchangeDevice": _zero, "_cuda_getDeviceCount": lambda: 1,
        "_cuda_synchronize": streams.synchronize,
        "_cuda_isCurrentStreamCapturing": lambda: False, "_cuda_init": _nothing, "_cuda_emptyCache": _nothing,
    }.items():  # fmt: skip
        setattr(torch._C, name, _own(value))
    torch.Generator = Generator
    torch.Stream, torch.Event = streams.Stream, streams.Event
    default = DefaultGenerator()
    tracing.default_generators.update({default._cdata: default, torch._C.default_generator._cdata: default})
    torch.default_generator = torch.random.default_generator = default
    torch.cuda.default_generators = (default,)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end", "range"):
        setattr(torch.cuda.nvtx, name, _own(_inert_context if name == "range" else _zero))
    for name, value in {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device_index": _zero,
        "synchronize": streams.synchronize,
        "current_accelerator": lambda *args, **kwargs: torch.device("cuda"), "set_device_index": _nothing,
        "current_stream": streams.current, "set_stream": streams.set_current,
    }.items():  # fmt: skip
        setattr(torch.accelerator, name, _own(value))
    _install_seeding()


def _install_seeding():
    import torch.random

    for module in (torch, torch.random):
        module.manual_seed, module.seed = manual_seed, seed
    torch.set_rng_state = torch.random.set_rng_state = _set_rng_state
    torch.get_rng_state = torch.random.get_rng_state = lambda: torch.default_generator.get_state()
    torch.random.fork_rng = generator_states.fork_rng
