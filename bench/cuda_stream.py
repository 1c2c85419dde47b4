"""How many one-kernel candidates a second are verified and timed on a GPU, with their kernels compiled
before.

    python3 bench/cuda_stream.py NEREID [COUNT] [--jobs N] [--keep FILE] [--once] [--device cpu]

Writes COUNT pairs (each its own kernel text), judges them twice with
`nereid verify --batch --device cuda --time`, and prints the rate of the second time, when every kernel is in
the cache: of the whole command, and from the first verdict to the last; then where a candidate's seconds go
(`phases` of the verdicts). `--device cpu` tries the script itself.
"""

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

REFERENCE = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * {a} + {b}) * x
def get_inputs():
    return [torch.randn(1024, {n}, device="cuda")]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch, triton
import triton.language as tl
@triton.jit
def kernel_{i}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x * {a} + {b}, 0.0) * x, mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        kernel_{i}[(triton.cdiv(n, {block}),)](x, out, n, BLOCK={block})
        return out
"""


def write_pairs(path, count):
    with open(path, "w") as file:
        for i in range(count):
            values = dict(
                i=i, a=1 + i / 64, b=(i % 7) / 8, n=1024 + 64 * (i % 5), block=(256, 512, 1024, 2048)[i % 4]
            )
            print(
                json.dumps(
                    {
                        "id": str(i),
                        "reference_source": REFERENCE.format(**values),
                        "candidate_source": CANDIDATE.format(**values),
                    }
                ),
                file=file,
            )


def judge(arguments, pairs, output):
    """When each verdict came, in seconds from the start of the command, and the verdicts."""
    command = [arguments.nereid, "verify", "--batch", pairs, "-o", output, "--device", arguments.device]
    command += ["--time"] if arguments.device == "cuda" else []
    command += ["--jobs", str(arguments.jobs)] if arguments.jobs else []
    start, arrivals, done = time.time(), [], threading.Event()

    def watch():
        while not done.wait(0.02):
            lines = open(output, "rb").read().count(b"\n") if os.path.exists(output) else 0
            arrivals.extend([time.time() - start] * (lines - len(arrivals)))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    subprocess.run(command, check=False)
    seconds = time.time() - start
    done.set()
    watcher.join()
    verdicts = [json.loads(line) for line in open(output)]
    arrivals.extend([seconds] * (len(verdicts) - len(arrivals)))
    return seconds, arrivals, verdicts


def report(name, seconds, arrivals, verdicts):
    words = collections.Counter(v["verdict"] for v in verdicts)
    count, spread = len(verdicts), arrivals[-1] - arrivals[0]
    print(
        f"{name}: {count / seconds:.1f} a second ({seconds:.1f} s), the first after {arrivals[0]:.1f} s, then"
        f" {(count - 1) / spread if spread > 0 else 0:.1f} a second; {dict(words)},"
        f" {sum(1 for v in verdicts if v.get('times'))} timed"
    )
    for reason in sorted({v["reason"][:200] for v in verdicts if v["verdict"] != "Verified"})[:5]:
        print("   ", reason)
    phases = sorted({phase for v in verdicts for phase in v["phases"]})
    for phase in phases:
        spent = [v["phases"].get(phase, 0) * 1e3 for v in verdicts]
        print(
            f"    {phase:14} median {statistics.median(spent):8.1f} ms, mean {statistics.mean(spent):8.1f}, "
            f"most {max(spent):8.1f}"
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--keep", help="where the verdicts of the last run go")
    parser.add_argument("--once", action="store_true", help="only once, with what the cache holds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pairs = os.path.join(folder, "pairs.jsonl")
        write_pairs(pairs, arguments.count)
        for name in ("cached",) if arguments.once else ("compiling", "cached"):
            output = os.path.join(folder, name)
            report(name, *judge(arguments, pairs, output))
        if arguments.keep:
            shutil.copy(output, arguments.keep)


main()
