"""Host time of a call of what `nereid.optimize` returns, without a GPU:
`.venv/bin/python bench/calls.py [--calls 100000]`.

The kernels of four layers are compiled for sm_90 and handed to a CUDA driver that does nothing
(tests/support/fake_cuda.cpp), so the driver's own time is missing, as is that of a GPU's allocator. Prints
microseconds of thread time a call: by the written file (NEREID_NATIVE_CALLS=0), by native code, by native
code with a graph, and the parts of the latter.
"""

import argparse
import ctypes
import os
import pathlib
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--calls", type=int, default=100_000)
options = parser.parse_args()
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests"), str(ROOT / "tests/python")]
sys.argv = [sys.argv[0], str(ROOT / "build/release/bin/nereid")]

import direct_launches_test as fakes  # noqa: E402
import nereid  # noqa: E402
import torch  # noqa: E402
from nereid import _launch  # noqa: E402
from nereid._optimize import module as optimized  # noqa: E402
from nereid._optimize import native, prepared  # noqa: E402
from torch import nn  # noqa: E402


def microseconds(call, rounds=5):
    """The least of a few means: other programs only add to it."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.thread_time()
        for _ in range(options.calls // rounds):
            call()
        best = min(best, (time.thread_time() - begun) / (options.calls // rounds))
    return best * 1e6


def as_on_a_gpu():
    """Tensors of the CPU are taken for a GPU's, and Triton's driver and NVIDIA's are replaced."""
    del os.environ["TRITON_INTERPRET"]
    optimized.no_device = lambda *_: None
    native._interpreted = bool
    prepared.same_numbers = lambda *_: True
    prepared.DRIVER = fakes.fake_cuda()._name
    entry = ctypes.cast(fakes.fake_cuda().cuLaunchKernelEx, ctypes.c_void_p).value
    _launch.entry = lambda: entry
    fakes.Launcher.__module__ = "triton.backends.nvidia.driver"
    fakes.driver.set_active(fakes.Driver())
    fakes.fake_cuda().fake_quiet(1)
    fakes.Driver.quiet = True


def without_interpreter(lists, plan, tensors, interpreted):
    surroundings(lists, plan, tensors, interpreted=False)


def called(fast, x, graphed=False):
    again = nereid.Optimized(fast._nereid_original, fast._nereid_plan, fast._nereid_settings)
    for count in range(12):
        again(x)
        if count == 0:
            again._nereid_kernels.graphed = graphed
    return again


surroundings = native._surroundings


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    module = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 32))
    module.eval().requires_grad_(False)
    x = torch.randn(64, 64)
    os.environ["TRITON_INTERPRET"] = "1"  # of the judge's process
    quick = dict(proposers="compiler", first=True, keep_slower=True, trials=1, policy="hybrid")
    fast = nereid.optimize(module, (x,), budget="600s", **quick)
    if fast.nereid_reason is not None:
        raise SystemExit(f"no kernels: {fast.nereid_reason}")
    plan = fast._nereid_plan
    at = plan.source.rindex("\n_guard(")
    before, after = (
        'import os\nos.environ["TRITON_INTERPRET"] = "1"\n',
        'del os.environ["TRITON_INTERPRET"]\n',
    )
    plan.source = f"{plan.source[:at]}\n{before}{plan.source[at:]}\n{after}"
    as_on_a_gpu()
    native._surroundings = without_interpreter
    os.environ["NEREID_NATIVE_CALLS"] = "0"
    written = called(fast, x)
    assert written._nereid_direct is not None
    print(f"the written file's launches: {microseconds(lambda: written(x)):.2f} us a call")
    del os.environ["NEREID_NATIVE_CALLS"]
    for graphed in (False, True):
        plan = called(fast, x, graphed)
        runner = plan._nereid_native.runner
        assert runner is not None, "no plan"
        time_of_all = microseconds(lambda plan=plan: plan(x))
        print(f"native{', with graphs' if graphed else ''}: {time_of_all:.2f} us a call, {runner.counts}")
        args, none = (x,), {}
        print(f"  native code alone {microseconds(lambda r=plan._nereid_native.run: r(args, none)):.2f}")
        print(f"  without its check {microseconds(lambda r=runner.run_checked: r(args)):.2f}")
        print(f"  its check alone {microseconds(lambda m=plan._nereid_native.matched: m(args, none)):.2f}")
    _, memory, size = next(p for p in prepared_places if p[0] == "made")
    print(f"  one allocation by torch {microseconds(lambda: memory(*size)):.2f}")
    print(f"eager on the CPU: {microseconds(lambda: module(x), 50):.2f} us a call")


prepared_places = []
plan_of = prepared.plan_of


def noted(description, *more):
    prepared_places.extend(description["tensors"])
    return plan_of(description, *more)


prepared.plan_of = noted

if __name__ == "__main__":
    main()
