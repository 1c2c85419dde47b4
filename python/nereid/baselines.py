"""How long PyTorch itself takes: a program of `baseline_text` (src/nereid/search) timed one way, as a user would call it.

    python -m nereid.baselines PROGRAM.py WAY [--device cuda] [--seconds 2]

WAY: eager, graph (eager as a CUDA graph), compile (torch.compile), max-autotune (torch.compile, mode="max-autotune"). Prints one JSON
object: {"call_ms": of a call until its result is there, "gpu_ms": between events on the GPU while calls queue up, "samples": n,
"first_seconds": of the first call} or {"declined": why}. Medians; before every call the GPU's L2 cache is overwritten.

The program is not the reference's own Python: it is written from its trace, and its steps have run in a jailed replay before.
"""
import argparse
import importlib.util
import json
import statistics
import sys
import time

FEWEST, MOST = 5, 2000  # samples


class Clock:
    """Times calls. `now` is a parameter so that tests bring their own."""

    def __init__(self, now=time.perf_counter, before=lambda: None, after=lambda: None):
        self.now, self.before, self.after = now, before, after

    def calls(self, call, seconds):
        """Milliseconds of each call, as its caller waits for it; for about so many seconds in all."""
        begin, times = self.now(), []
        while len(times) < FEWEST or (self.now() - begin < seconds and len(times) < MOST):
            self.before()
            start = self.now()
            call()
            self.after()
            times.append((self.now() - start) * 1e3)
        return times


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
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(10)]
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


def way_of(name, model, inputs):
    """What is called again and again."""
    import torch

    if name in ("compile", "max-autotune"):
        compiled = torch.compile(model, mode="max-autotune" if name == "max-autotune" else "default")
        return lambda: compiled(*inputs)
    eager = lambda: model(*inputs)
    return captured(eager) if name == "graph" else eager


def measure(path, way, device, seconds):
    if device == "cpu" and way == "graph":
        return {"declined": "a CUDA graph needs a GPU"}
    import torch

    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    torch.manual_seed(0)
    with torch.no_grad():
        inputs, state = program.make()
        model = program.Model(state).eval()
        begin = time.perf_counter()
        call = way_of(way, model, inputs)
        for _ in range(3):  # torch.compile compiles, cuDNN chooses
            call()
        wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        wait()
        answer = {"first_seconds": time.perf_counter() - begin}
        before = lambda: None
        if device == "cuda":
            flush = cold_cache()
            before = lambda: (flush(), wait())
        times = Clock(before=before, after=wait).calls(call, seconds / 2)
        answer.update(call_ms=statistics.median(times), samples=len(times))
        if device == "cuda":
            answer["gpu_ms"] = statistics.median(gpu_times(call, seconds / 2))
    return answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("way", choices=("eager", "graph", "compile", "max-autotune"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    try:
        answer = measure(options.program, options.way, options.device, options.seconds)
    except Exception as error:  # what PyTorch does not compile or capture is an answer too
        answer = {"declined": f"{type(error).__name__}: {error}"[:500]}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
