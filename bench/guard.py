"""Thread time of the check before a call of what `nereid.optimize` returns:
`.venv/bin/python bench/guard.py`.

Prints a line a module: the time of the whole check in Python, and of the native one that later calls take, in
microseconds. Nothing is judged and no kernel runs: the check of a plan without kernels takes as long.
"""

import os
import pathlib
import sys
import time

os.environ["TRITON_INTERPRET"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/python")]

import torch  # noqa: E402
from guarded import guarded  # noqa: E402
from torch import nn  # noqa: E402


def microseconds(function, seconds=0.3, repeats=7):
    """The least of `repeats` means: other programs only add to it."""
    count, best = 1, float("inf")
    while True:
        begun = time.thread_time()
        for _ in range(count):
            function()
        taken = time.thread_time() - begun
        if taken > seconds / repeats:
            best, repeats = min(best, taken / count), repeats - 1
            if repeats == 0:
                return best * 1e6
        else:
            count *= 2


def main():
    torch.manual_seed(0)
    deep = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(16)))
    modules = {
        "Linear": nn.Linear(8, 8),
        "5 modules": nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.LayerNorm(8)),
        "49 modules": deep,
    }
    x = torch.randn(4, 8)
    for name, module in modules.items():
        fast = guarded(module.requires_grad_(False), x)
        in_python = microseconds(lambda: fast._nereid_differs((x,), {}))
        native = microseconds(lambda: fast._nereid_choice((x,), {}))
        print(f"{name}: {in_python:.1f} us in Python, {native:.1f} us natively")


if __name__ == "__main__":
    main()
