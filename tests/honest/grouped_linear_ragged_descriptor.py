"""Groups of rows through a ragged descriptor: its addresses wrap at 64 bits, its coordinates are what is checked.

reference: ../tasks/grouped_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.ragged_tma import create_ragged_descriptor, load_ragged, store_ragged


@triton.jit
def grouped_kernel(x_desc, counts_ptr, w_ptr, out_desc, N, K, BLOCK: tl.constexpr):
    expert = tl.program_id(0)
    first = tl.zeros((), dtype=tl.int32)
    for e in range(expert):
        first += tl.load(counts_ptr + e).to(tl.int32)
    rows = tl.load(counts_ptr + expert).to(tl.int32)
    n = tl.program_id(1) * BLOCK
    for tile in range(0, tl.cdiv(rows, BLOCK)):
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, K, BLOCK):
            k = start + tl.arange(0, BLOCK)
            x = load_ragged(x_desc, first, rows, [tile * BLOCK, start])
            ws = w_ptr + (expert * K + k[:, None]) * N + n + tl.arange(0, BLOCK)[None, :]
            acc = tl.dot(x, tl.load(ws), acc, input_precision="ieee")
        store_ragged(out_desc, first, rows, [tile * BLOCK, n], acc)


class ModelNew(nn.Module):
    def __init__(self, experts, width, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, out_features) / width**0.5)

    def forward(self, x, counts):
        experts, K, N = self.weight.shape
        out = torch.empty((x.shape[0], N), device=x.device, dtype=x.dtype)
        x_desc, out_desc = create_ragged_descriptor(x, [16, 16]), create_ragged_descriptor(out, [16, 16])
        grouped_kernel[(experts, triton.cdiv(N, 16))](x_desc, counts, self.weight, out_desc, N, K, BLOCK=16)
        return out
