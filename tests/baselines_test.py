"""PyTorch's own times: the clock, by a clock of the test's own; each mode that a CPU has, on a program as
program_text writes it.

tests/baselines_test.py
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import preloaded

PYTHON = pathlib.Path(__file__).resolve().parent.parent / "python"
sys.path.insert(0, str(PYTHON))
from nereid._timing import baselines

MODULE = """import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module("nereid._timing.baselines", run_name="__main__", alter_sys=True)"""
PROGRAM = """import torch

DEVICE = "cpu"


def make():
    t0 = torch.ops.aten.randn.default([64, 64], device=DEVICE)
    t1 = torch.ops.aten.randn.default([64, 64], device=DEVICE)
    return [t1, ], [t0, ]


class Model(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
        for i, tensor in enumerate(state):
            self.register_buffer(f"w{i}", tensor)

    def forward(self, a0):
        t0 = torch.ops.aten.mm.default(a0, self.w0)
        return (torch.ops.aten.RELU.default(t0),)
"""


class Time:
    """A clock on which nothing but what is done takes time."""

    def __init__(self):
        self.now, self.said = 0.0, []

    def takes(self, seconds, what=None):
        def do():
            self.now += seconds
            self.said.append(what)

        return do


class Clock(unittest.TestCase):
    def test_only_the_call_and_its_end_count(self):
        time = Time()
        clock = baselines.Clock(
            now=lambda: time.now,
            before=time.takes(5, "flush"),
            after=time.takes(0.25, "wait"),
            preempted=lambda: 0,
        )
        times = clock.calls(time.takes(1, "call"), 60)
        self.assertEqual(set(times), {1250.0})
        self.assertEqual(len(times), 10)  # 6.25 s each, for a minute
        self.assertEqual(time.said[:4], ["flush", "call", "wait", "flush"])

    def test_a_few_at_least_and_not_too_many(self):
        time = Time()
        clock = baselines.Clock(now=lambda: time.now, preempted=lambda: 0)
        self.assertEqual(len(clock.calls(time.takes(100), 1)), baselines.FEWEST)
        self.assertEqual(len(clock.calls(time.takes(1e-9), 1)), baselines.MOST)

    def test_a_call_that_lost_its_core_is_timed_again(self):
        time, preempted = Time(), [0]
        slow = iter([True, False] * 100)

        def call():
            if next(slow):  # another process has the core for 30 s
                preempted[0] += 1
                time.now += 30
            time.now += 1

        clock = baselines.Clock(now=lambda: time.now, preempted=lambda: preempted[0])
        self.assertEqual(clock.calls(call, 60), [1e3] * 5)  # four calls of each kind take 128 s

    def test_where_every_call_loses_its_core_all_count(self):
        time, preempted = Time(), iter(range(1000))
        clock = baselines.Clock(now=lambda: time.now, preempted=lambda: next(preempted))
        self.assertEqual(clock.calls(time.takes(10), 10), [1e4] * baselines.FEWEST)


class Ways(unittest.TestCase):
    def measure(self, mode, program):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(program)
            run = subprocess.run(
                preloaded.command(
                    "torch", "-c", MODULE, PYTHON, path, mode, "--device", "cpu", "--seconds", 0.1
                ),
                timeout=1200,
                capture_output=True,
                text=True,
                env=dict(os.environ, TORCHINDUCTOR_VEC_ISA_OK="1"),
            )
            self.assertEqual(run.returncode, 0, run.stderr)
            return json.loads(run.stdout.splitlines()[-1])

    def test_eager(self):
        answer = self.measure("eager", PROGRAM.replace("RELU", "relu"))
        self.assertGreater(answer["call_ms"], 0)
        self.assertGreaterEqual(answer["samples"], baselines.FEWEST)

    def test_what_cannot_be_timed_says_why(self):
        self.assertIn("GPU", self.measure("graph", PROGRAM)["declined"])
        self.assertIn("RELU", self.measure("eager", PROGRAM)["declined"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
