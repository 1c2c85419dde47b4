"""torch makes a boolean mask of the lengths; the kernel sums under it and divides by its count.

reference: ../tasks/ragged_mean.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, mask_ptr, out_ptr, longest, width, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    count = 0
    for r in range(longest):
        valid = tl.load(mask_ptr + i * longest + r)
        acc += tl.load(x_ptr + (i * longest + r) * width + c, mask=(c < width) & valid, other=0.0)
        count += valid.to(tl.int32)
    tl.store(out_ptr + i * width + c, acc / count, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        mean_kernel[(x.shape[0],)](x, mask, out, x.shape[1], x.shape[2], BLOCK=64)
        return out
