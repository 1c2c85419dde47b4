"""How long a program of `program_text` (src/nereid/search) takes, called in one mode as a user would call it:
PyTorch's own modes, and a candidate's.

    python -m nereid._timing.baselines PROGRAM.py WAY [--device cuda] [--seconds 2]

(`nereid optimize` and `eval` ask call_server.py, which forks for each program.) WAY: eager (as it is), graph
(as a CUDA graph), compile (torch.compile), max-autotune (torch.compile, mode="max-autotune"), and eager-tf32,
compile-tf32, max-autotune-tf32: the same under torch.set_float32_matmul_precision("high"). Prints one JSON
object: {"call_ms": of a call until its result is there, "gpu_ms": between events on the GPU while calls queue
up, "samples": n, "first_seconds": of the first call} or {"declined": why}. Medians; before every call the
GPU's L2 cache is overwritten.

The program is not the reference's own Python: it is written from its trace, and its steps have run in a
jailed replay before.
"""

import argparse
import contextlib
import functools
import json
import linecache
import pathlib
import resource
import statistics
import time
import types

FEWEST, MOST = 5, 2000  # samples
LONGER = 4  # times the seconds asked for, if other processes interrupt calls
TF32 = "-tf32"
MODES = ("eager", "graph", "compile", "max-autotune", "eager-tf32", "compile-tf32", "max-autotune-tf32")


def preemptions():
    """How often this thread has lost its core to another process."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw


class Clock:
    """Times calls. `now` and `preempted` are parameters so that tests bring their own."""

    def __init__(self, now=time.perf_counter, before=lambda: None, after=lambda: None, preempted=preemptions):
        self.now, self.before, self.after, self.preempted = now, before, after, preempted

    def calls(self, call, seconds):
        """Milliseconds of each call, as its caller waits for it; for about so many seconds in all.

        A call during which another process took the core does not count. Where that leaves fewer than FEWEST
        in `seconds`, calling goes on for up to LONGER times as long; then all calls count.
        """
        begin, times, clean = self.now(), [], []
        while len(times) < MOST:
            spent = self.now() - begin
            if len(clean) >= FEWEST and spent >= seconds:
                break
            if len(times) >= FEWEST and spent >= LONGER * seconds:
                break
            self.before()
            before = self.preempted()
            start = self.now()
            call()
            self.after()
            took = (self.now() - start) * 1e3
            times.append(took)
            if self.preempted() == before:
                clean.append(took)
        return clean if len(clean) >= FEWEST else times


def cold_cache():
    """Overwrites the L2 cache."""
    import torch

    size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
    buffer = torch.empty(max(size, 64 << 20), dtype=torch.int8, device="cuda")
    return buffer.zero_


def gpu_times(call, seconds):
    """Milliseconds between events around each call; the host runs ahead while the cache is overwritten."""
    import torch

    flush, times, begin = cold_cache(), [], time.perf_counter()
    while len(times) < FEWEST or (time.perf_counter() - begin < seconds and len(times) < MOST):
        pairs = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(10)
        ]
        for start, end in pairs:
            flush()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        times += [start.elapsed_time(end) for start, end in pairs]
    return times


def captured(call):
    """The call as a CUDA graph."""
    import torch

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call()  # its memory belongs to the graph
    return lambda: (graph.replay(), kept)


class Turns:
    """Access to the GPU: no other process uses it here. call_server.py asks its parent process instead."""

    share = alone = staticmethod(contextlib.nullcontext)
    waited = 0.0  # seconds


def gated(turns):
    """torch.compile as it is, but that its graphs' first runs, and what it times while it compiles, have the
    GPU to themselves."""
    from torch._inductor import compile_fx
    from torch._inductor.runtime import benchmarking

    inner, within = compile_fx.compile_fx, []

    def compile_and_wait(*args, **kwargs):
        if within:  # it calls itself
            return inner(*args, **kwargs)
        within.append(True)
        try:
            run = inner(*args, **kwargs)
        finally:
            within.pop()
        done = []

        def first_alone(*args):
            if done:
                return run(*args)
            done.append(True)
            with turns.alone():  # Triton's configurations are tried now
                return run(*args)

        return first_alone

    compile_fx.compile_fx = compile_and_wait
    for kind in type(benchmarking.benchmarker).__mro__:
        if "benchmark_gpu" in vars(kind):
            kind.benchmark_gpu = alone_in(turns, kind.benchmark_gpu)


def alone_in(turns, call):
    @functools.wraps(call)
    def wrapped(*args, **kwargs):
        with turns.alone():
            return call(*args, **kwargs)

    return wrapped


def as_written(model, inputs, state, launches):
    """The class as the compiler's files have it: behind a guard and, if it launches kernels, with direct
    launches."""
    from nereid._written import direct, guard

    def traced(tensors):
        return [
            guard._Tensor(str(t.dtype).removeprefix("torch."), tuple(t.shape), t.stride(), t.device.type)
            for t in tensors
        ]

    verified = {"inputs": traced(inputs), "constructor": [traced(state)], "state": None, "modes": False}
    guard._guard(model, verified, direct=direct._direct if launches else None)


class Program:
    """What program_text wrote, with its inputs and its weights."""

    def __init__(self, text, device, turns=Turns, written=False, launches=True):
        import torch

        name = "<program>"
        module = types.ModuleType("program")
        module.__file__ = name
        linecache.cache[name] = (
            len(text),
            None,
            text.splitlines(True),
            name,
        )  # triton.jit reads its functions' text
        self.device, self.turns = device, turns
        self.wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        torch.manual_seed(0)
        with torch.no_grad(), turns.share():
            exec(compile(text, name, "exec"), vars(module))  # kernels are loaded
            self.inputs, state = module.make()
            if written:
                as_written(module.Model, self.inputs, state, launches)
            self.model = module.Model(state).eval()
            self.wait()

    def measure(self, mode, seconds):
        import torch

        if mode == "graph" and self.device == "cpu":
            return {"declined": "a CUDA graph needs a GPU"}
        with torch.no_grad(), tf32(mode.endswith(TF32)):
            mode = mode.removesuffix(TF32)
            begin, waited = time.perf_counter(), self.turns.waited
            if mode == "graph":
                with self.turns.share():
                    call = captured(lambda: self.model(*self.inputs))
            elif mode in ("compile", "max-autotune"):
                torch._dynamo.reset()
                call = self.compiled("max-autotune" if mode == "max-autotune" else "default")
            else:
                call = lambda: self.model(*self.inputs)
            with self.turns.share():
                call()  # cuDNN chooses
                self.wait()
            first = time.perf_counter() - begin - (self.turns.waited - waited)
            with self.turns.alone():
                return {"first_seconds": first, **self.times(call, seconds)}

    def compiled(self, mode):
        import torch

        model = torch.compile(self.model, mode=mode)
        model(*self.inputs)
        self.wait()
        return lambda: model(*self.inputs)

    def times(self, call, seconds):
        flush, before = None, lambda: None
        if self.device == "cuda":
            flush = cold_cache()
            before = lambda: (flush(), self.wait())
        for _ in range(2):
            call()
        self.wait()
        times = Clock(before=before, after=self.wait).calls(call, seconds / 2)
        answer = {"call_ms": statistics.median(times), "samples": len(times)}
        if self.device == "cuda":
            answer["gpu_ms"] = statistics.median(gpu_times(call, seconds / 2))
        return answer


@contextlib.contextmanager
def tf32(allowed):
    """Float32 products and convolutions in TF32 meanwhile; not allowed: as the program has it."""
    import torch

    if not allowed:
        yield
        return
    matmul, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cudnn.allow_tf32 = cudnn


def rejection_reason(error):
    """What PyTorch does not compile or capture is an answer too."""
    return {"declined": f"{type(error).__name__}: {error}"[:500]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    try:
        answer = Program(pathlib.Path(options.program).read_text(), options.device).measure(
            options.mode, options.seconds
        )
    except Exception as error:
        answer = rejection_reason(error)
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
