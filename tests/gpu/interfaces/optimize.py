"""`nereid.optimize` on modules of a GPU: guards, streams, CUDA graphs, several devices."""

import copy
import functools
import io
import os
import pickle
import sys
import threading

from checks import (
    CUDA,
    DEVICE,
    Skipped,
    by_kernels,
    expect,
    microseconds,
    near,
    need_cuda,
    prepared,
    quick,
    run,
    same_end,
)

nereid = prepared()
import torch  # noqa: E402
from torch import nn  # noqa: E402


@functools.cache
def original():
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 32))
    return made.to(DEVICE).eval().requires_grad_(False)


@functools.cache
def optimized():
    return built(original(), inputs())


@functools.cache
def graphed():
    return built(original(), inputs(), **({"cuda_graph": True} if CUDA else {}))


def built(module, *args, **more):
    fast = nereid.optimize(module, args, **quick(**more))
    expect(fast.nereid_reason is None, f"no kernels: {fast.nereid_reason}")
    return fast


def inputs(*shape):
    return torch.randn(*(shape or (64, 64)), device=DEVICE)


def kernels_hold_and_are_right():
    for _ in range(4):
        x = inputs()
        near(by_kernels(optimized(), x), original()(x))
        near(optimized()(x), original()(x))  # without a hook: directly
    if CUDA:
        expect(optimized()(inputs()).is_cuda, "the answer is on the CPU")


def calls_outside_are_the_originals():
    wide = inputs(64, 128)
    for x in (
        inputs(0, 64),
        inputs(1, 64),
        inputs(3, 5, 64),
        wide[:, ::2],
        inputs(64, 64).t(),
        inputs(64, 64).double(),
    ):
        same_end(lambda x=x: optimized()(x), lambda x=x: original()(x))
    unaligned = inputs(64 * 64 + 1)[1:].view(64, 64)
    for _ in range(3):
        near(optimized()(unaligned), original()(unaligned))
    x = inputs()
    with torch.inference_mode():
        near(by_kernels(optimized(), x), original()(x))
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        near(optimized()(x), original()(x), 2e-2)
    several = inputs(2, 64, 64)
    near(torch.vmap(optimized())(several), torch.vmap(original())(several))


def gradients_are_the_originals():
    x = inputs().requires_grad_()
    optimized()(x).square().sum().backward()
    got, x.grad = x.grad, None
    original()(x).square().sum().backward()
    near(got, x.grad)
    with torch.no_grad():
        by_kernels(optimized(), x)


def inputs_of_the_cpu():
    need_cuda()
    x = torch.randn(64, 64)
    same_end(lambda: optimized()(x), lambda: original()(x))
    moved, alone = copy.deepcopy(optimized()).cpu(), copy.deepcopy(original()).cpu()
    near(moved(x), alone(x))
    moved.cuda()
    y = inputs()
    near(by_kernels(moved, y), moved._nereid_original(y))


def copies_pickles_and_half():
    x = inputs()
    near(by_kernels(copy.deepcopy(optimized()), x), original()(x))
    near(by_kernels(pickle.loads(pickle.dumps(optimized())), x), original()(x))
    stored = io.BytesIO()
    torch.save(optimized(), stored)
    stored.seek(0)
    near(torch.load(stored, weights_only=False)(x), original()(x))
    half = copy.deepcopy(optimized()).half()
    near(half(x.half()), half._nereid_original(x.half()), 1e-2)
    changed = copy.deepcopy(optimized())
    changed.load_state_dict({name: value * 2 for name, value in changed.state_dict().items()})
    near(by_kernels(changed, x), changed._nereid_original(x))


def another_stream():
    need_cuda()
    stream, y = torch.cuda.Stream(), inputs()
    for call in range(6):
        values = inputs()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)  # kernels on another stream would read y before it is written
            y.copy_(values)
            got = optimized()(y)
        stream.synchronize()
        near(got, original()(values))


def threads_with_streams():
    failures = []
    # While one thread captures a graph, PyTorch refuses random numbers of the device in the others.
    drawn = [inputs() for _ in range(10 if CUDA else 2)]

    def calls(call):
        try:
            stream = torch.cuda.Stream() if CUDA else None
            with torch.cuda.stream(stream), torch.no_grad():
                for x in drawn:
                    near(call(x), original()(x))
        except BaseException as error:
            failures.append(error)

    for call in (optimized(), graphed()):
        threads = [threading.Thread(target=calls, args=(call,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


def a_capture_of_the_callers():
    need_cuda()
    for call in (optimized(), graphed()):
        x, y = inputs(), inputs()
        for _ in range(3):
            call(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = call(x)
        x.copy_(y)
        graph.replay()
        near(got, original()(y))


def a_state_that_forward_writes_to():
    torch.manual_seed(1)
    norm = nn.BatchNorm1d(64).to(DEVICE).train().requires_grad_(False)
    alone, fast = copy.deepcopy(norm), None
    fast = built(norm, inputs())
    norm.load_state_dict(alone.state_dict())
    for _ in range(3):
        x = inputs()
        near(by_kernels(fast, x), alone(x))
    near(dict(norm.state_dict()), dict(alone.state_dict()))


def random_numbers():
    drop = (
        nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.4), nn.ReLU()).to(DEVICE).train().requires_grad_(False)
    )
    fast, x = nereid.optimize(drop, (inputs(),), **quick()), inputs()
    answers = []
    for call in (fast, drop):
        torch.manual_seed(3)
        answers.append([call(x) for _ in range(3)])
    near(*answers)
    return "kernels" if fast.nereid_reason is None else f"the original: {fast.nereid_reason}"[:150]


def any_batch_and_further_sizes():
    module = nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6), nn.Linear(6, 3)).to(DEVICE).requires_grad_(False)
    fast = built(module, inputs(4, 8), dynamic="batch")
    for batch in (4, 33, 100):
        x = inputs(batch, 8)
        near(by_kernels(fast, x), module(x))
    fast = built(original(), inputs(16, 64), specialize=2)
    x = inputs(9, 64)
    near(fast(x), original()(x))
    expect(fast.nereid_wait(120), "kernels for another size were not verified within 120 s")
    near(by_kernels(fast, x), original()(x))


def planned(call):
    """Of what calls are run by natively, after its first ones: (launched, replayed, graphs)."""
    runner = call._nereid_native.runner
    expect(runner is not None, "calls are not run natively")
    return runner.counts


def calls_are_run_natively():
    need_cuda()
    for call in (optimized(), graphed()):
        drawn = [inputs() for _ in range(4)]
        for _ in range(3):
            call(drawn[0])
        before = planned(call)
        for _ in range(10):
            for x in drawn:
                near(call(x), original()(x))
        kept = [(x, call(x)) for x in drawn * 3]  # each call has its own results
        for _ in range(20):
            call(drawn[0])
        for x, got in kept:
            near(got, original()(x))
        launched, replayed, graphs = planned(call)
        count = launched + replayed - sum(before[:2])
        expect(count == 72, f"72 calls, of which {count} were run natively")
        expect((graphs > 0) == (call is graphed()), f"{graphs} graphs")
        expect(call is optimized() or replayed > 20, f"{launched} launched, {replayed} replayed")
        old = original().state_dict()
        call.load_state_dict({name: value + 0.01 for name, value in old.items()})
        x = inputs()
        near(call(x), original()(x))
        moved = copy.deepcopy(call)
        for _ in range(4):
            near(moved(x), original()(x))
        for parameter in original().parameters():  # other addresses
            parameter.data = parameter.data.clone()
        near(call(x), original()(x))
    expect(optimized()._nereid_native.runner.direct, "tensors are read by Python's methods")


def results_are_read_on_another_stream():
    need_cuda()
    other, kept = torch.cuda.Stream(), []
    for _ in range(12):
        x = inputs()
        got, want = graphed()(x), original()(x)
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            torch.cuda._sleep(4_000_000)
            kept.append((got * 1, want))
        got.record_stream(other)
        del got
    torch.cuda.synchronize()
    for got, want in kept:
        near(got, want)


def without_plans(call):
    """A copy whose calls are left to the written file."""
    os.environ["NEREID_NATIVE_CALLS"] = "0"
    try:
        alone = copy.deepcopy(call)
        for _ in range(6):
            x = inputs()
            near(alone(x), alone._nereid_original(x))
    finally:
        del os.environ["NEREID_NATIVE_CALLS"]
    expect(alone._nereid_native.runner is None, "calls are run natively")
    alone._nereid_kernels._tries = 0
    return alone


def a_graph_is_captured():
    if not CUDA:
        raise Skipped("needs a GPU")
    alone = without_plans(graphed())
    held = alone._nereid_kernels._module.__dict__["_graph_captured"]
    expect(held.key is not None, f"is not captured: {held.why}")
    kept = [(x, alone(x)) for x in (inputs(), inputs(), inputs())]  # each call has its own results
    for x, got in kept:
        near(got, alone._nereid_original(x))
    alone.load_state_dict({name: value + 0.01 for name, value in original().state_dict().items()})
    x = inputs()
    near(alone(x), alone._nereid_original(x))


def a_graph_on_two_streams():
    need_cuda()
    streams, kept = [torch.cuda.Stream(), torch.cuda.Stream()], []
    torch.cuda.synchronize()
    for call in range(8):
        with torch.cuda.stream(streams[call % 2]):
            x = inputs()
            torch.cuda._sleep(4_000_000)
            kept.append((x, graphed()(x)))
    torch.cuda.synchronize()
    for x, got in kept:
        near(got, original()(x))


def time_of_a_call():
    need_cuda()
    x = inputs()
    times = {"eager": microseconds(lambda: original()(x))}
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        optimized()(x), graphed()(x)
    with torch.cuda.graph(graph):
        optimized()(x)
    times["replay alone"] = microseconds(graph.replay)
    times["optimize"] = microseconds(lambda: optimized()(x))
    times["cuda_graph=True"] = microseconds(lambda: graphed()(x))
    for name, call in (("optimize", optimized()), ("cuda_graph=True", graphed())):
        planned(call)
        runner, none = call._nereid_native.runner, {}
        times[f"{name}: native alone"] = microseconds(lambda run=runner.run: run((x,), none))
        times[f"{name}: without its check"] = microseconds(lambda run=runner.run_checked: run((x,)))
    fast = optimized()
    times["its check"] = microseconds(lambda: fast._nereid_native.matched((x,), {}))
    times["its check in Python"] = microseconds(lambda: fast._nereid_differs((x,), {}))
    written, captured = without_plans(optimized()), without_plans(graphed())
    times["optimize by the written file"] = microseconds(lambda: written(x))
    times["cuda_graph=True by the written file"] = microseconds(lambda: captured(x))
    text = ", ".join(f"{name} {value:.1f}" for name, value in times.items())
    over = min(times["optimize"], times["cuda_graph=True"]) - times["replay alone"]
    print(f"figure {torch.cuda.get_device_name()}: microseconds a call: {text}", flush=True)
    return f"{over:.1f} us over the replay (bar 5, {'met' if over <= 5 else 'missed'})"


def another_current_device():
    need_cuda(2)
    other, x = copy.deepcopy(optimized()).to("cuda:1"), inputs().to("cuda:1")
    alone = copy.deepcopy(original()).to("cuda:1")
    near(other(x), alone(x))  # the current device is cuda:0
    with torch.cuda.device(1):
        for _ in range(3):
            near(by_kernels(other, x), alone(x))
    near(other(x), alone(x))
    same_end(lambda: optimized()(x), lambda: original()(x))  # a module of cuda:0, an input of cuda:1
    y = inputs()
    near(by_kernels(optimized(), y), original()(y))
    with torch.cuda.device(1):
        y = torch.randn(64, 64, device="cuda:0")
        near(optimized()(y), original()(y))


def a_graph_on_another_device():
    need_cuda(2)
    other, alone = copy.deepcopy(graphed()).to("cuda:1"), copy.deepcopy(original()).to("cuda:1")
    with torch.cuda.device(1):
        for _ in range(5):
            x = torch.randn(64, 64, device="cuda:1")
            near(other(x), alone(x))


def data_parallel():
    need_cuda(2)
    x = inputs()
    near(nn.DataParallel(optimized())(x), original()(x))


PARTS = {
    "optimize": [
        kernels_hold_and_are_right, calls_outside_are_the_originals, gradients_are_the_originals,
        inputs_of_the_cpu,
        copies_pickles_and_half, another_stream, a_state_that_forward_writes_to, random_numbers,
        any_batch_and_further_sizes,
    ],
    "graph": [
        time_of_a_call, calls_are_run_natively, results_are_read_on_another_stream, a_graph_is_captured,
        a_graph_on_two_streams, threads_with_streams, a_capture_of_the_callers,
    ],
    "devices": [another_current_device, a_graph_on_another_device, data_parallel],
}  # fmt: skip

if __name__ == "__main__":
    torch.set_grad_enabled(True)
    run(sys.argv[1], PARTS[sys.argv[1]])
