"""What a verdict on a large task takes: device memory at most, and host memory at most by process.

    python3 tests/gpu/memory.py NEREID [--gigabytes 20] [--inputs 2] [--device cuda] [--host-limit 1.0]

The task: relu of one input, or of the sum of two; inputs and output make the gigabytes together. Fails where
the verdict is not Verified, where the GPU holds more than the verdict's own bound (`coverage.memory_bytes`; a
tenth and what contexts take is allowed) or much less, or where the judge's process and its servers hold more
than `--host-limit` GiB of host memory of their own. Of the processes that talk to a GPU, the driver's and the
libraries' share is subtracted: it is theirs whatever they run.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

REFERENCE = """
import torch
ROWS = {rows}
class Model(torch.nn.Module):
    def forward(self, {names}):
        return torch.relu({sum})
def get_inputs():
    return [torch.rand(ROWS, 65536, device="cuda") - 0.5 for _ in range({inputs})]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch, triton
import triton.language as tl
@triton.jit
def kernel({pointers}, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = {loads}
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)
class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 4096),)]({names}, out, x.numel(), BLOCK=4096, num_warps=8)
        return out
"""
CONTEXTS = 8 << 30  # of up to a dozen processes that are kept warm


def files(inputs, rows):
    names = ["x", "y"][:inputs]
    words = {
        "rows": rows,
        "inputs": inputs,
        "names": ", ".join(names),
        "sum": " + ".join(names),
        "pointers": ", ".join(n + "_ptr" for n in names),
        "loads": " + ".join(f"tl.load({n}_ptr + i, mask=i < n)" for n in names),
    }
    return {"reference.py": REFERENCE.format(**words), "candidate.py": CANDIDATE.format(**words)}


def descendants(root):
    children = collections.defaultdict(list)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                children[int(open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)[1].split()[1])].append(
                    int(entry.name)
                )
            except OSError:
                pass
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children[found[-1]]
    return found


def host_bytes(pid):
    """(program, bytes that this process alone accounts for: shared pages in parts, files' pages apart)."""
    name = os.path.basename(open(f"/proc/{pid}/cmdline").read().split("\0")[0]) or "?"
    numbers = {}
    for line in open(f"/proc/{pid}/smaps_rollup"):
        words = line.split()
        if len(words) == 3 and words[2] == "kB":
            numbers[words[0].rstrip(":")] = int(words[1]) * 1024
    return name, numbers.get("Pss_Anon", 0) + numbers.get("Pss_Shmem", 0)


def device_bytes():
    listed = subprocess.run(
        ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
    )
    return int(listed.stdout.split()[0]) << 20 if listed.returncode == 0 else 0


def watch(command, gpu):
    before = device_bytes() if gpu else 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    most, device = collections.Counter(), 0
    done = threading.Event()

    def look():
        nonlocal device
        while not done.wait(0.1):
            now = collections.Counter()
            for pid in descendants(process.pid):
                try:
                    name, size = host_bytes(pid)
                    now[name] += size
                except (OSError, ProcessLookupError):
                    pass
            for name, size in now.items():
                most[name] = max(most[name], size)
            if gpu:
                device = max(device, device_bytes() - before)

    thread = threading.Thread(target=look)
    start = time.time()
    thread.start()
    output = process.communicate()[0]
    done.set()
    thread.join()
    return json.loads(output), time.time() - start, most, device


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--inputs", type=int, default=1, choices=(1, 2))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--host-limit", type=float, default=1.0, help="GiB")
    arguments = parser.parse_args()
    row = (arguments.inputs + 1) * 4 * 65536
    rows = max(1, round(arguments.gigabytes * 1e9 / row))
    task = row * rows
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in files(arguments.inputs, rows).items():
            (folder / file).write_text(text)
        gpu = arguments.device == "cuda"
        verdict, seconds, host, device = watch(
            [
                arguments.nereid,
                "verify",
                str(folder / "reference.py"),
                str(folder / "candidate.py"),
                "--json",
                "--device",
                arguments.device,
            ]
            + (["--time"] if gpu else []),
            gpu,
        )
    print(f"task of {task / 1e9:.1f} GB: {verdict['verdict']} in {seconds:.1f} s: {verdict['reason'][:200]}")
    print("phases: " + ", ".join(f"{k} {v:.2f} s" for k, v in verdict["phases"].items()))
    for program, size in host.most_common():
        print(f"    host memory of {program:24} {size / 2**30:6.2f} GiB")
    workers = ("nereid-replay", "nereid-replay-cuda")
    judge = sum(size for program, size in host.items() if program not in workers)
    print(
        f"the judge without its replays: {judge / 2**30:.2f} GiB of host memory (at most"
        f" {arguments.host_limit} allowed)"
    )
    wrong = verdict["verdict"] != "Verified" or judge > arguments.host_limit * 2**30
    bound = verdict["coverage"]["memory_bytes"]
    print(f"bound at most: {bound / 1e9:.2f} GB, {bound / task:.2f} times the task")
    if gpu:
        print(f"device memory at most {device / 1e9:.1f} GB: {device / task:.2f} times the task")
        wrong |= not 0.7 * bound < device < 1.1 * bound + CONTEXTS
    sys.exit(1 if wrong else 0)


main()
