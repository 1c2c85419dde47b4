"""How many one-kernel candidates a second are verified and timed on a GPU, with their kernels compiled before.

    python3 bench/cuda_stream.py NEREID [COUNT]

Writes COUNT pairs (each its own kernel text), judges them twice with `nereid verify --batch --device cuda --time`, and
prints the rate of the second time, when every kernel is in the cache.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

REFERENCE = '''
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x * {a} + {b}) * x
def get_inputs():
    return [torch.randn(1024, {n}, device="cuda")]
def get_init_inputs():
    return []
'''
CANDIDATE = '''
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
'''


def main():
    nereid, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100
    with tempfile.TemporaryDirectory() as folder:
        pairs = os.path.join(folder, "pairs.jsonl")
        with open(pairs, "w") as file:
            for i in range(count):
                values = dict(i=i, a=1 + i / 64, b=(i % 7) / 8, n=1024 + 64 * (i % 5), block=(256, 512, 1024, 2048)[i % 4])
                print(json.dumps({"id": str(i), "reference_source": REFERENCE.format(**values),
                                  "candidate_source": CANDIDATE.format(**values)}), file=file)
        for name in ("compiling", "cached"):
            output = os.path.join(folder, name)
            start = time.time()
            subprocess.run([nereid, "verify", "--batch", pairs, "-o", output, "--device", "cuda", "--time"], check=False)
            seconds = time.time() - start
            verdicts = [json.loads(line) for line in open(output)]
            words = collections.Counter(v["verdict"] for v in verdicts)
            print(f"{name}: {count / seconds:.1f} a second ({seconds:.1f} s), {dict(words)}, "
                  f"{sum(1 for v in verdicts if v.get('times'))} timed")


main()
