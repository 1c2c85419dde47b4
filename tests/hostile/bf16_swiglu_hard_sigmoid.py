"""sigmoid(1.01 g).

reference: ../tasks/swiglu_bf16.py
verdict: Mismatch
rule: values
why: another function.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def glu_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate_ptr + i, mask=i < n, other=0).to(tl.float32)
    u = tl.load(up_ptr + i, mask=i < n, other=0).to(tl.float32)
    y = g * tl.sigmoid(1.01 * g) * u
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        out = torch.empty_like(gate)
        glu_kernel[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
        return out
