"""The place of the maximum by integers in the order of the floats.

reference: ../tasks/argmax.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, high_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    index = tl.argmax(key, axis=0)
    tl.store(high_ptr + row, tl.max(x, 0))
    tl.store(index_ptr + row, index.to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        high = torch.empty(rows, device=x.device, dtype=x.dtype)
        index = torch.empty(rows, device=x.device, dtype=torch.int64)
        argmax_kernel[(rows,)](x, high, index, cols, BLOCK=triton.next_power_of_2(cols))
        return high, index
