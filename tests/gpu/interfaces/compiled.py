"""`torch.compile(backend="nereid")` on models of a GPU."""

import copy
import shutil
import sys

from checks import CUDA, DEVICE, Skipped, expect, launches, near, prepared, quick, run

nereid = prepared()
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

nereid.compile_backend  # noqa: B018 (a checkout has no entry point: this makes the name known)
FALLBACK = "inductor" if CUDA and shutil.which("gcc") else "eager"


class Block(nn.Module):
    def __init__(self, breaks=False):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)
        self.breaks = breaks

    def forward(self, x):
        hidden = F.gelu(self.up(self.norm(x)))
        if self.breaks:
            torch._dynamo.graph_break()
        return x + self.down(hidden)


def block(**more):
    torch._dynamo.reset()
    torch.manual_seed(0)
    return Block(**more).to(DEVICE).eval().requires_grad_(False)


def compiled(model, **more):
    options = quick(fallback=FALLBACK, cache=False, **more)
    return torch.compile(model, backend="nereid", options=options)


def inputs(*shape):
    return torch.randn(*(shape or (16, 32)), device=DEVICE)


def by_kernels(count=1):
    """The newest graphs; each was verified and called."""
    graphs = nereid.compiled_graphs()[-count:]
    for graph in graphs:
        expect(graph.reason is None and graph.calls > 0, f"{graph}")
    return graphs


def one_graph():
    model = block()
    fast = compiled(model)
    for _ in range(4):
        x = inputs()
        near(fast(x), model(x))
    by_kernels()
    count = launches(lambda: fast(inputs()))
    expect(count is None or count > 0, "no kernel was launched")
    model.up.weight.mul_(2.0)
    x = inputs()
    near(fast(x), model(x))


def graph_breaks():
    model = block(breaks=True)
    fast, x = compiled(model), inputs()
    near(fast(x), model(x))
    near(fast(x), model(x))
    by_kernels(2)


def dynamic_shapes():
    model = block()
    fast = torch.compile(
        model, backend="nereid", dynamic=True, options=quick(fallback=FALLBACK, cache=False, specialize=2)
    )
    for batch in (16, 7, 16, 9, 7):
        x = inputs(batch, 32)
        near(fast(x), model(x))
    graphs = by_kernels()
    expect(len(graphs[0].verdicts) == 2, f"{len(graphs[0].verdicts)} sets of sizes were judged, expected 2")


def the_first_call_does_not_wait():
    model = block()
    fast, x = compiled(model, background=True), inputs()
    near(fast(x), model(x))
    graph = nereid.compiled_graphs()[-1]
    expect(graph.fallback_calls == 1, f"{graph}")
    expect(graph.wait(150), "not verified within 150 s")
    near(fast(x), model(x))
    by_kernels()


def a_step_of_training():
    model = block().train().requires_grad_(True)
    alone, x = copy.deepcopy(model), inputs()
    compiled(model)(x).square().mean().backward()
    alone(x).square().mean().backward()
    near([p.grad for p in model.parameters()], [p.grad for p in alone.parameters()])


def autocast_and_inference_mode():
    model = block()
    fast, x = compiled(model), inputs()
    with torch.inference_mode():
        near(fast(x), model(x))
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        near(fast(x), model(x), 2e-2)


def another_stream():
    if not CUDA:
        raise Skipped("needs a GPU")
    model, stream = block(), torch.cuda.Stream()
    fast, y = compiled(model), inputs()
    fast(y)
    for _ in range(4):
        values = inputs()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            y.copy_(values)
            got = fast(y)
        stream.synchronize()
        near(got, model(values))


def what_optimize_returned():
    """torch.export, torch.compile and torch.jit.trace see the original's operators."""
    model, x = block(), inputs()
    fast = nereid.optimize(model, (x,), **quick())
    near(torch.export.export(fast, (x,)).module()(x), model(x))
    near(torch.compile(fast, backend=FALLBACK)(x), model(x))
    near(torch.jit.trace(fast, (x,))(x), model(x))


def ahead_of_time():
    if not shutil.which("g++"):
        raise Skipped("needs g++")
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    model, x = block(), inputs()
    fast = nereid.optimize(model, (x,), **quick(operators=True))
    program = torch.export.export(fast, (x,))
    expect("nereid.kernels_" in str(program.graph), f"the kernels are not seen: {program.graph}")
    near(program.module()(x), model(x))
    if not CUDA:
        raise Skipped("exported and run; AOTInductor's kernels need a GPU")
    near(aoti_load_package(aoti_compile_and_package(program))(x), model(x))


CHECKS = [
    one_graph, graph_breaks, dynamic_shapes, the_first_call_does_not_wait, a_step_of_training,
    autocast_and_inference_mode,
    another_stream, what_optimize_returned, ahead_of_time,
]  # fmt: skip

if __name__ == "__main__":
    run(sys.argv[1], CHECKS)
