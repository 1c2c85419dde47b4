"""The kernel moves on by changing the address in its table.

reference: ../tasks/relu_plus.py
verdict: Disallowed or Unsafe
why: what the table holds is not known when the kernel is launched; the second call begins at the end.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for first in range(0, n, BLOCK):
        address = tl.load(table)
        x_ptr = address.to(tl.pointer_type(tl.float32))
        tl.store(out_ptr + first + i, tl.maximum(tl.load(x_ptr + i, mask=first + i < n), 0.0) + 1, mask=first + i < n)
        tl.debug_barrier()
        tl.store(table, address + 4 * BLOCK)
        tl.debug_barrier()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr()], device=x.device)
        k[(1,)](table, out, x.numel(), BLOCK=1024)
        return out
