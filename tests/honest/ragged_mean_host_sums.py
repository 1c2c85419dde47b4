"""Host lengths become running sums that say where each sequence starts in a packed copy; the kernel divides by their differences.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, ends_ptr, out_ptr, longest, width, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    length = tl.load(ends_ptr + i + 1) - tl.load(ends_ptr + i)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(length):
        acc += tl.load(x_ptr + (i * longest + r) * width + c, mask=c < width, other=0.0)
    tl.store(out_ptr + i * width + c, acc / length.to(tl.float32), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, lengths):
        ends = [0]
        for length in lengths.tolist():
            ends.append(ends[-1] + length)
        ends = torch.tensor(ends, dtype=torch.int32, device=x.device)
        out = torch.empty(x.shape[0], x.shape[2], device=x.device)
        mean_kernel[(x.shape[0],)](x, ends, out, x.shape[1], x.shape[2], BLOCK=64)
        return out
