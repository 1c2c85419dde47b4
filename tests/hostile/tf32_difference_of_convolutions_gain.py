"""One of two TF32 convolutions is 0.3 % too large.

reference: ../tasks/difference_of_convolutions.py
verdict: Mismatch
rule: values
why: what truncation takes off the other one is 0.07 %.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, u_ptr, y_ptr, w_ptr, out_ptr, S, N, O, C: tl.constexpr, BM: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    m, o = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BO + tl.arange(0, BO)
    image = (m // S) * C * S + m % S
    live, wide = m[:, None] < N, o[None, :] < O
    a = tl.zeros((BM, BO), dtype=tl.float32)
    b = tl.zeros((BM, BO), dtype=tl.float32)
    for start in range(0, C, BC):
        c = start + tl.arange(0, BC)
        x = tl.load(x_ptr + image[:, None] + c[None, :] * S, mask=live, other=0.0)
        u = tl.load(u_ptr + o[None, :] * C + c[:, None], mask=wide, other=0.0)
        y = tl.load(y_ptr + image[:, None] + c[None, :] * S, mask=live, other=0.0)
        w = tl.load(w_ptr + o[None, :] * C + c[:, None], mask=wide, other=0.0)
        y = ((y.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)
        w = ((w.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)
        a = tl.dot(x, u, a, input_precision="tf32")
        b = tl.dot(y, w, b, input_precision="tf32")
    tl.store(out_ptr + (m // S * O * S + m % S)[:, None] + o[None, :] * S, a * 1.003 - b, mask=live & wide)


class ModelNew(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.a = nn.Conv2d(channels, out_channels, 1, bias=False)
        self.b = nn.Conv2d(channels, out_channels, 1, bias=False)
        nn.init.uniform_(self.a.weight)
        nn.init.uniform_(self.b.weight)

    def forward(self, x, y):
        n, c, h, w = x.shape
        o = self.a.out_channels
        out = torch.empty(n, o, h, w, device=x.device)
        grid = (triton.cdiv(n * h * w, 64), triton.cdiv(o, 32))
        k[grid](x, self.a.weight, y, self.b.weight, out, h * w, n * h * w, o, c, BM=64, BO=32, BC=64)
        return out
