"""What the groups of tests/gpu/interfaces.py share: checks that print a line each, and modules."""

import os
import pathlib
import statistics
import sys
import time
import traceback

DEVICE = os.environ["NEREID_GPU_TEST_DEVICE"]
FOLDER = pathlib.Path(os.environ["NEREID_GPU_TEST_FOLDER"])
PROGRAM = os.environ["NEREID_GPU_TEST_PROGRAM"]
CUDA = DEVICE == "cuda"


class Skipped(Exception):
    """Why a check cannot be done here."""


def run(group, checks):
    """A line for each check of a list of functions; the process ends with 1 where one failed."""
    failed = False
    for check in checks:
        name, begun = f"{group}: {check.__name__.replace('_', ' ')}", time.monotonic()
        try:
            more = check()
            word = "ok"
        except Skipped as why:
            word, more = "skipped", str(why)
        except BaseException as error:
            failed = True
            traceback.print_exc()
            word, more = "FAILED", f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
        print(f"{word} {name} ({time.monotonic() - begun:.1f} s){f': {more}' if more else ''}", flush=True)
    sys.exit(1 if failed else 0)


def expect(holds, text):
    if not holds:
        raise AssertionError(text)


def need_cuda(devices=1):
    if not CUDA:
        raise Skipped("needs a GPU")
    import torch

    if torch.cuda.device_count() < devices:
        raise Skipped(f"needs {devices} GPUs")


def quick(**more):
    """Options of `optimize` and of the backend: the compiler's first answer, judged."""
    options = dict(
        policy="hybrid",
        budget="150s",
        first=True,
        proposers="compiler",
        seed=5,
        device=DEVICE,
        keep_slower=True,
    )
    return {**options, "trials": 2 if CUDA else 1, **more}


def near(got, want, tolerance=1e-3):
    import torch
    from nereid import _structure

    found = [], []
    for value, tensors in zip((got, want), found):
        _structure.flatten(value, tensors)
    expect(len(found[0]) == len(found[1]), f"{len(found[0])} tensors, expected {len(found[1])}")
    for a, b in zip(*found):
        expect(
            (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device),
            f"{a.dtype} {tuple(a.shape)} {a.device}, expected {b.dtype} {tuple(b.shape)} {b.device}",
        )
        torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance, equal_nan=True)


def same_end(one, other):
    """Both calls answer alike, or both raise the same type."""
    ends = []
    for call in (one, other):
        try:
            ends.append(call())
        except Exception as error:
            ends.append(type(error))
    if any(isinstance(end, type) for end in ends):
        expect(ends[0] is ends[1], f"expected {ends[1]}, got {ends[0]}")
    else:
        near(*ends)


def launches(call):
    """How many kernels a call launches through Triton; None in the interpreter."""
    if not CUDA:
        call()
        return None
    from triton import knobs

    seen = []
    knobs.runtime.launch_enter_hook.add(seen.append)
    try:
        call()
    finally:
        knobs.runtime.launch_enter_hook.remove(seen.append)
    return len(seen)


def by_kernels(fast, *args):
    """The answer of a call that verified kernels do."""
    import nereid

    why = nereid.explain(fast, *args)
    expect(why is None, f"the original runs: {why}")
    answers = []
    count = launches(lambda: answers.append(fast(*args)))
    expect(count is None or count > 0, "no kernel was launched")
    expect(fast._nereid_failed is None, f"the kernels failed: {fast._nereid_failed}")
    return answers[0]


def microseconds(call, calls=1500):
    """The median of nine rounds of calls that are issued back to back."""
    import torch

    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(calls // 9):
            call()
        times.append((time.perf_counter() - begun) / (calls // 9) * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def prepared():
    """Imports nereid; on a CPU gives Triton's interpreter what it lacks."""
    if not CUDA:
        import interpreted
        import torch

        torch.set_num_threads(1)
        interpreted.libdevice()
    import nereid

    return nereid
