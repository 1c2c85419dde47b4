"""The product, its gate and the residual in one kernel, whatever the gate's values.

reference: ../tasks/residual_gate.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gate_kernel(x_ptr, w_ptr, gate_ptr, out_ptr, M, D, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, D, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + m[:, None] * D + k[None, :], mask=(m[:, None] < M) & (k[None, :] < D), other=0.0)
        w = tl.load(w_ptr + n[None, :] * D + k[:, None], mask=(n[None, :] < D) & (k[:, None] < D), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    mask = (m[:, None] < M) & (n[None, :] < D)
    gate = tl.load(gate_ptr + n, mask=n < D, other=0.0)
    x = tl.load(x_ptr + m[:, None] * D + n[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + m[:, None] * D + n[None, :], x + gate[None, :] * acc, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width, bias=False)
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        M, D = x.shape
        out = torch.empty_like(x)
        grid = (triton.cdiv(M, 32), triton.cdiv(D, 32))
        gate_kernel[grid](x, self.proj.weight, self.gate, out, M, D, BLOCK=32)
        return out
