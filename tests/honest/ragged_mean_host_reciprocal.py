"""One launch a sequence, given its length to loop over and the reciprocal of it as a float.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, length, scale, width, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(length):
        acc += tl.load(x_ptr + r * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + c, acc * scale, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        out = torch.empty((x.shape[0], x.shape[2]), device=x.device)
        for i, length in enumerate(lengths.tolist()):
            mean_kernel[(1,)](x[i], out[i], length, 1.0 / length, x.shape[2], BLOCK=64)
        return out
