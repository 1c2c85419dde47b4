"""Returns one tensor as both outputs.

reference: ../tasks/min_max.py
verdict: Disallowed
rule: shared-output
why: the lowest is not the highest, nor in the same memory.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def max_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * cols + c, mask=c < cols, other=-float("inf"))
    tl.store(out_ptr + tl.program_id(0), tl.max(x, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        max_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=512)
        return {"low": out, "high": out}
