"""torch.bincount counts; a kernel turns the counts into floats and reads an input for show.

reference: ../tasks/histogram.py
verdict: Disallowed
rule: aten-compute
why: counting is the task.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def float_kernel(count_ptr, x_ptr, out_ptr, BINS: tl.constexpr):
    i = tl.arange(0, BINS)
    shown = tl.load(x_ptr + i) * 0
    tl.store(out_ptr + i, (tl.load(count_ptr + i) + shown).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        counts = torch.zeros(64, dtype=torch.int64, device=x.device)
        counts.scatter_add_(0, x.long(), torch.ones_like(x, dtype=torch.int64))
        out = torch.empty(64, device=x.device)
        float_kernel[(1,)](counts, x, out, BINS=64)
        return out
