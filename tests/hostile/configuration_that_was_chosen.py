"""Host code looks up which configuration the autotuner chose, and launches another kernel where it is not the first.

reference: ../tasks/relu_wide.py
verdict: Untraceable
rule: not-traceable
why: a trace holds for one choice; what depends on it cannot be judged for all.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def relu_kernel(y_ptr, out_ptr, n, FLOOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.maximum(tl.load(y_ptr + at, mask=at < n), FLOOR), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        y, out = torch.empty_like(x), torch.empty_like(x)
        copy_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        block = copy_kernel.best_config.kwargs["BLOCK"]
        relu_kernel[(triton.cdiv(n, block),)](y, out, n, FLOOR=0.0 if block == 256 else -0.1, BLOCK=block)
        return out
