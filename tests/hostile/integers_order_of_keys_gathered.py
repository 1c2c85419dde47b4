"""torch's argsort of integer keys; a kernel gathers by it.

reference: ../tasks/sort_keys.py
verdict: Disallowed
rule: aten-compute or aten-share
why: the order is the task's work.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x_ptr, order_ptr, out_ptr, cols, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (i // cols) * cols + tl.load(order_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, keys):
        out = torch.empty_like(keys)
        order = torch.argsort(keys, -1)
        gather_kernel[(triton.cdiv(keys.numel(), 512),)](keys, order, out, keys.shape[1], keys.numel(), BLOCK=512)
        return out
