"""One launch: every program finds its group from the counts in memory.

reference: ../tasks/grouped_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def grouped_kernel(x_ptr, counts_ptr, w_ptr, out_ptr, N, K, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    first = tl.zeros((), dtype=tl.int32)
    for e in range(expert):
        first += tl.load(counts_ptr + e).to(tl.int32)
    rows = tl.load(counts_ptr + expert).to(tl.int32)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    for tile in range(0, tl.cdiv(rows, BLOCK)):
        m = tile * BLOCK + tl.arange(0, BLOCK)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, K, BLOCK):
            k = start + tl.arange(0, BLOCK)
            xs = x_ptr + (first + m[:, None]) * K + k[None, :]
            ws = w_ptr + (expert * K + k[:, None]) * N + n[None, :]
            x = tl.load(xs, mask=(m[:, None] < rows) & (k[None, :] < K), other=0.0)
            w = tl.load(ws, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(x, w, acc, input_precision="ieee")
        outs = out_ptr + (first + m[:, None]) * N + n[None, :]
        tl.store(outs, acc, mask=(m[:, None] < rows) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, experts, width, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, out_features) / width**0.5)

    def forward(self, x, counts):
        experts, K, N = self.weight.shape
        out = torch.empty((x.shape[0], N), device=x.device, dtype=x.dtype)
        grouped_kernel[(experts, triton.cdiv(N, 16))](x, counts, self.weight, out, N, K, BLOCK=16)
        return out
