"""Lengths read on the host, put into one int32 tensor with the rows where each sequence starts; the kernel divides by them.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, start_ptr, length_ptr, out_ptr, width, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    start, length = tl.load(start_ptr + i), tl.load(length_ptr + i)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(length):
        acc += tl.load(x_ptr + (start + r) * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + i * width + c, acc / length.to(tl.float32), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        longest = x.shape[1]
        length = torch.tensor(lengths.tolist(), dtype=torch.int32, device=x.device)
        start = torch.tensor([i * longest for i in range(x.shape[0])], dtype=torch.int32, device=x.device)
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        mean_kernel[(x.shape[0],)](x, start, length, out, x.shape[2], BLOCK=64)
        return out
