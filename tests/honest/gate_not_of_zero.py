"""A gate that is closed at zero, written the other way round.

reference: ../tasks/chosen_by_sign.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def choose_kernel(gate_ptr, x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(gate_ptr + i, mask=i < n, other=0.0)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = tl.load(y_ptr + i, mask=i < n, other=0.0)
    x = tl.minimum(tl.maximum(x, -0.5), 1.0)
    tl.store(out_ptr + i, tl.where(~(gate <= 0) & (gate == gate), x, y), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, gate, x, y):
        out = torch.empty_like(x)
        choose_kernel[(triton.cdiv(x.numel(), 256),)](gate, x, y, out, x.numel(), BLOCK=256)
        return out
