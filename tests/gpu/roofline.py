"""A candidate that is faster than reading its input is no Error where the rest of the input does not matter.

    python3 tests/gpu/roofline.py NEREID [--gigabytes 1] [--device cuda]

Two tasks over one input: relu of its first quarter, and relu of all of it. The first takes less than reading
the input would, so the judge asks which of it the outputs depend on, and must find about a quarter; of the
second nothing need be asked, and its time is above what the device can do.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

REFERENCE = """
import torch
ROWS, USED = {rows}, {used}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x[:USED])
def get_inputs():
    return [torch.rand(ROWS, 65536, device="cuda") - 0.5]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch, triton
import triton.language as tl
USED = {used}
@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(USED, x.shape[1], device=x.device)
        kernel[(triton.cdiv(out.numel(), 4096),)](x, out, out.numel(), BLOCK=4096, num_warps=8)
        return out
"""


def judged(nereid, device, rows, used):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "reference.py").write_text(REFERENCE.format(rows=rows, used=used))
        (folder / "candidate.py").write_text(CANDIDATE.format(used=used))
        done = subprocess.run(
            [nereid, "verify", folder / "reference.py", folder / "candidate.py", "--json", "--device", device]
            + (["--time"] if device == "cuda" else []),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    arguments = parser.parse_args()
    rows = 4 * max(1, round(arguments.gigabytes * 1e9 / (4 * 4 * 65536)))
    wrong = 0
    for used in (rows // 4, rows):
        verdict = judged(arguments.nereid, arguments.device, rows, used)
        line = f"{used} of {rows} rows: {verdict['verdict']}: {verdict['reason'][:200]}"
        right = verdict["verdict"] == "Verified"
        if right and arguments.device == "cuda":
            times, asked = verdict["times"], verdict["phases"].get("time_needs", 0)
            line += f"; {times['candidate_ms']:.4f} ms, at least {times['numbers']['roofline_ms']:.4f} ms"
            line += f", asked for {asked:.2f} s" if asked else ", not asked"
            right = (asked > 0) == (used < rows) and 0 < times["numbers"]["roofline_ms"] < times[
                "candidate_ms"
            ]
        print(line if right else "WRONG: " + line)
        wrong += not right
    sys.exit(1 if wrong else 0)


main()
