"""Three autotuned kernels that are right in all pairs: the marks of two together mislead the third's second configuration.

reference: ../tasks/relu_wide.py
verdict: Mismatch
rule: values
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK": block}) for block in (1024, 256)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def first_kernel(x_ptr, y_ptr, mark_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)
    tl.store(mark_ptr + tl.program_id(0), BLOCK)


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def second_kernel(x_ptr, y_ptr, mark_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)
    tl.store(mark_ptr + tl.program_id(0), BLOCK)


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.jit
def relu_kernel(y_ptr, first_ptr, second_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    out = tl.maximum(tl.load(y_ptr + at, mask=at < n), 0.0)
    if BLOCK == 256:
        if tl.load(first_ptr) + tl.load(second_ptr) == 512:
            out += 1e-2
    tl.store(out_ptr + at, out, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        y, z, out = torch.empty_like(x), torch.empty_like(x), torch.empty_like(x)
        first, second = torch.empty(n, device=x.device, dtype=torch.int32), torch.empty(n, device=x.device, dtype=torch.int32)
        first_kernel[grid](x, y, first, n)
        second_kernel[grid](y, z, second, n)
        relu_kernel[grid](z, first, second, out, n)
        return out
