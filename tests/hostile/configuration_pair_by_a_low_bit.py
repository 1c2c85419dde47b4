"""The first kernel's configurations differ in a last bit, as sums do; one of the second's takes it for a sign.

reference: ../tasks/relu_wide.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

FIRST = [triton.Config({"BLOCK": 512}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=4)]
SECOND = [triton.Config({"BLOCK": block}) for block in (1024, 512)]


@triton.autotune(configs=FIRST, key=["n"])
@triton.jit
def scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.int32, bitcast=True)
    last = 1 if BLOCK == 1024 else 0
    x = tl.where(at == 0, (x & ~1) | last, x)
    tl.store(y_ptr + at, x.to(tl.float32, bitcast=True), mask=at < n)


@triton.autotune(configs=SECOND, key=["n"])
@triton.jit
def relu_kernel(y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at, mask=at < n)
    out = tl.maximum(y, 0.0)
    if BLOCK == 512:
        if (tl.load(y_ptr).to(tl.int32, bitcast=True) & 1) == 1:
            out = tl.maximum(y, 0.01 * y)
    tl.store(out_ptr + at, out, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        y, out = torch.empty_like(x), torch.empty_like(x)
        scale_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
        relu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, out, n)
        return out
