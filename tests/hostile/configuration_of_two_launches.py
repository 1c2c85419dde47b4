"""One autotuned kernel is launched twice, and is wrong where both launches have its second configuration.

reference: ../tasks/relu_wide.py
verdict: Mismatch
rule: values
why: launches with one key are given one configuration: the two never differ.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def relu_kernel(x_ptr, mark_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(mark_ptr)
    floor = 0.0
    if BLOCK == 512:
        floor = tl.where(before == 512.0, -0.1, 0.0)
    tl.store(out_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), floor), mask=at < n)
    if tl.program_id(0) == 0:
        tl.store(mark_ptr + 1, 0.0 + BLOCK)


class ModelNew(nn.Module):
    def forward(self, x):
        n = x.numel()
        y, out = torch.empty_like(x), torch.empty_like(x)
        marks = torch.zeros(3, device=x.device)
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        relu_kernel[grid](x, marks, y, n)
        relu_kernel[grid](x, marks[1:], out, n)
        return out
