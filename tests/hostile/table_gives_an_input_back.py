"""A kernel might write the input through its table, but does not, and forward returns the input itself.

reference: ../tasks/tanh_and_input.py
verdict: Disallowed
rule: shared-output
why: a caller that changes the output would change the input.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scaled_tanh(table, scale_ptr, columns, n, BLOCK: tl.constexpr):
    x_ptr = tl.load(table).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(table + 1).to(tl.pointer_type(tl.float32))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tanh = 2 * tl.sigmoid(2 * x) - 1
    tl.store(out_ptr + i, tanh * tl.load(scale_ptr + i % columns), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        out = torch.empty_like(x)
        table = torch.tensor([x.data_ptr(), out.data_ptr()], device=x.device)
        scaled_tanh[(triton.cdiv(x.numel(), 1024),)](table, self.scale, x.shape[1], x.numel(), BLOCK=1024)
        return out, x, self.scale.clone()
