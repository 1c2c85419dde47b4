"""Integer prefix sums, all in one kernel.

reference: ../tasks/prefix_sums.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0)
    tl.store(out_ptr + row * cols + c, tl.cumsum(x, 0), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, keys):
        out = torch.empty_like(keys)
        scan_kernel[(keys.shape[0],)](keys, out, keys.shape[1], BLOCK=256)
        return out
