"""Puts what is equal to an edge into the bucket above it.

reference: ../tasks/buckets_of_edges.py
verdict: Mismatch
why: bucketize puts it below; no number that is drawn at random is an edge.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bucket_kernel(x_ptr, e_ptr, out_ptr, n, edges, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    count = tl.zeros((BLOCK,), tl.int32)
    for k in range(edges):
        count += (tl.load(e_ptr + k) <= x).to(tl.int32)
    tl.store(out_ptr + i, count.to(tl.float32) * 0.25, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, edges):
        out = torch.empty_like(x)
        bucket_kernel[(triton.cdiv(x.numel(), 512),)](x, edges, out, x.numel(), edges.numel(), BLOCK=512)
        return out
