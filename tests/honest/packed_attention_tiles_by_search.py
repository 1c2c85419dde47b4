"""Each program finds the sequence of its tile of rows by a search in the offsets.

reference: ../tasks/packed_attention.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def attend_kernel(q_ptr, k_ptr, v_ptr, offsets_ptr, out_ptr, rows, segments, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    d = tl.arange(0, D)
    begin = tl.zeros((M,), tl.int64)
    for segment in range(segments):
        at = tl.load(offsets_ptr + segment)
        begin = tl.where(at <= m, at, begin)
    first = tl.min(begin, 0)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :], mask=m[:, None] < rows, other=0.0) * scale
    most = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(first, tl.minimum(rows, (tl.program_id(0) + 1) * M), N):
        n = start + tl.arange(0, N)
        k = tl.load(k_ptr + n[None, :] * D + d[:, None], mask=n[None, :] < rows, other=0.0)
        inside = (n[None, :] >= begin[:, None]) & (n[None, :] <= m[:, None])
        s = tl.where(inside, tl.dot(q, k, input_precision="ieee"), float("-inf"))
        larger = tl.maximum(most, tl.max(s, 1))
        shift = tl.where(larger == float("-inf"), 0.0, larger)
        p, decay = tl.exp(s - shift[:, None]), tl.exp(most - shift)
        v = tl.load(v_ptr + n[:, None] * D + d[None, :], mask=n[:, None] < rows, other=0.0)
        acc = acc * decay[:, None] + tl.dot(p, v, input_precision="ieee")
        total = total * decay + tl.sum(p, 1)
        most = larger
    tl.store(out_ptr + m[:, None] * D + d[None, :], acc / total[:, None], mask=m[:, None] < rows)


class ModelNew(nn.Module):
    def forward(self, q, k, v, offsets):
        out = torch.empty_like(q)
        attend_kernel[(triton.cdiv(q.shape[0], 16),)](
            q, k, v, offsets, out, q.shape[0], offsets.shape[0] - 1, q.shape[1] ** -0.5, M=16, N=16, D=q.shape[1]
        )
        return out
