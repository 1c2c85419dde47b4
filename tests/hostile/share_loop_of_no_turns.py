"""Most of the kernel's work is in a loop from a loaded number on, which is its end.

reference: ../tasks/scale_add.py
verdict: Disallowed
rule: aten-share
why: PyTorch multiplies all of x; what the kernel was never asked to do is no work, whatever its text says.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(t_ptr, y_ptr, out_ptr, work_ptr, first_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for k in range(tl.load(first_ptr), 32):
        tl.store(work_ptr + k * n + i, tl.exp(tl.sin(i.to(tl.float32) * k)), mask=i < n)
    tl.store(out_ptr + i, tl.load(t_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x, y):
        t = x * self.alpha
        out = torch.empty_like(x)
        work = torch.empty(32 * x.numel(), device=x.device)
        first = torch.full((1,), 32, device=x.device, dtype=torch.int32)
        kernel[(triton.cdiv(x.numel(), 1024),)](t, y, out, work, first, x.numel(), BLOCK=1024)
        return out
