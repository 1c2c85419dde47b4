"""Two autotuned kernels: one configuration of the first leaves a mark that one configuration of the second obeys.

reference: ../tasks/relu_wide.py
verdict: Mismatch
rule: values
why: each configuration is right with the other kernel's default.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

FIRST = [triton.Config({"BLOCK": block}) for block in (256, 512, 1024)]
SECOND = [triton.Config({"BLOCK": block}) for block in (1024, 256, 512)]


@triton.autotune(configs=FIRST, key=["n"])
@triton.jit
def copy_kernel(x_ptr, y_ptr, mark_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)
    if tl.program_id(0) == 0:
        tl.store(mark_ptr, BLOCK)


@triton.autotune(configs=SECOND, key=["n"])
@triton.jit
def relu_kernel(y_ptr, mark_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at, mask=at < n)
    if BLOCK == 512:
        floor = tl.where(tl.load(mark_ptr) == 1024, -0.1, 0.0)
    else:
        floor = 0.0
    tl.store(out_ptr + at, tl.maximum(y, floor), mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        y, out = torch.empty_like(x), torch.empty_like(x)
        mark = torch.empty(1, device=x.device, dtype=torch.int32)
        copy_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, mark, n)
        relu_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, mark, out, n)
        return out
