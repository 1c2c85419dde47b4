"""How many CPU verdicts a second: different one-kernel candidates at small shapes, each traced, replayed with
the sanitizer, tried and checked with its launch left out.

    .venv/bin/python bench/verdicts.py [--count 200] [--jobs 2] [--nereid build/release/bin/nereid]

The rate is taken from the first verdict to the last, so that starting the workers (seconds, once) does not
count. The peak memory is that of the judge's own process; tensors live in the workers. On a machine that does
other work besides, the processor time of all processes together (`cpu_seconds`) says more: run it with two
counts and divide the difference.
"""

import argparse
import json
import os
import pathlib
import platform
import resource
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = """import torch
import torch.nn as nn

ROWS, COLS = 64, 256


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.relu(x + self.bias)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
"""
CANDIDATE = """import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu_{i}(x_ptr, bias_ptr, out_ptr, n, width, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    bias = tl.load(bias_ptr + offsets % width, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x + bias, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        out = torch.empty_like(x)
        add_relu_{i}[(triton.cdiv(x.numel(), {block}),)](x, self.bias, out, x.numel(), x.shape[1],
                                                         BLOCK={block})
        return out
"""


def watch(process, peak):
    while process.poll() is None:
        try:
            for line in open(f"/proc/{process.pid}/status"):
                if line.startswith("VmHWM"):
                    peak[0] = max(peak[0], int(line.split()[1]))
        except OSError:
            pass
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--nereid", type=pathlib.Path, default=ROOT / "build/release/bin/nereid")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "reference.py").write_text(REFERENCE)
        with open(folder / "pairs.jsonl", "w") as pairs:
            for i in range(arguments.count):
                source = CANDIDATE.format(i=i, block=128 << i % 4)
                pairs.write(
                    json.dumps({"id": str(i), "reference": "reference.py", "candidate_source": source}) + "\n"
                )
        command = [
            arguments.nereid,
            "verify",
            "--batch",
            folder / "pairs.jsonl",
            "--device",
            "cpu",
            "--jobs",
            str(arguments.jobs),
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        peak, times, words, started = [0], [], {}, time.time()
        threading.Thread(target=watch, args=(process, peak), daemon=True).start()
        seconds = []
        for line in process.stdout:
            verdict = json.loads(line)
            times.append(time.time())
            seconds.append(verdict["seconds"])
            words[verdict["verdict"]] = words.get(verdict["verdict"], 0) + 1
        process.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    elapsed = times[-1] - times[0]
    rate = (len(times) - 1) / elapsed
    cores = min(arguments.jobs, os.cpu_count())
    print(
        json.dumps(
            {
                "verdicts": len(times),
                "words": words,
                "jobs": arguments.jobs,
                "cores": cores,
                "verdicts_per_second": round(rate, 2),
                "per_core": round(rate / cores, 2),
                "median_seconds": round(sorted(seconds)[len(seconds) // 2], 4),
                "until_first_seconds": round(times[0] - started, 2),
                "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
                "judge_peak_mb": round(peak[0] / 1024, 1),
                "load_average": os.getloadavg()[0],
                "machine": platform.processor() or platform.machine(),
            }
        )
    )


if __name__ == "__main__":
    main()
