"""bench/small_model/bars.py reads what `nereid eval` writes: every task has its kind and its verdict.

tests/bars_test.py NEREID
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BARS = pathlib.Path(__file__).resolve().parent.parent / "bench/small_model/bars.py"
TASK = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn({sizes})]


def get_init_inputs():
    return []
"""


class Bars(unittest.TestCase):
    def test_a_table_of_an_evaluation(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            for length, layer in ((1, "nn.ReLU()"), (2, "nn.GELU()"), (5, "nn.Softmax(-1)")):
                line = {"code": TASK.format(layer=layer, sizes="4, 16")}
                (work / f"{length}.jsonl").write_text(json.dumps(line) + "\n")
            packages = work / "harvested-packages"
            packages.mkdir()
            (packages / "task0000.py").write_text(TASK.format(layer="nn.LayerNorm(16)", sizes="4, 16"))
            (packages / "task0001.py").write_text(
                TASK.format(layer="nn.Tanh()", sizes="4, 16, dtype=torch.complex64")
            )

            def run(*words, codes=(0,)):
                done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
                self.assertIn(done.returncode, codes, done.stderr)
                return done.stdout

            run(sys.executable, BARS, "split", work)
            # 1: not every task is Verified.
            run(NEREID, "eval", work / "part0", "-o", work / "out", "--proposer", "compiler", "--once",
                "--device", "cpu", "--policy", "strict", codes=(0, 1))  # fmt: skip
            table = run(sys.executable, BARS, "report", work, work / "out")
            for row in ("1 operator | 1 of 1", "2 operators | 1 of 1", "5 operators | 1 of 1",
                        "packages | 1 of 2", "convolutions, pools, norms | 1 of 1"):  # fmt: skip
                self.assertIn(f"| {row} |", table)
            self.assertIn("0 tasks were not judged", table)

            # What an evaluation has not come to is left out, and counted.
            results = work / "out/results.jsonl"
            lines = results.read_text().splitlines()
            results.write_text("".join(f"{line}\n" for line in lines if "_L1_" not in line))
            table = run(sys.executable, BARS, "report", work, work / "out")
            self.assertNotIn("| 1 operator |", table)
            self.assertIn("1 tasks were not judged", table)


if __name__ == "__main__":
    NEREID = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
