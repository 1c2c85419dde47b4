"""Takes what tl.gather finds before the tile for its first element.

reference: ../tasks/reversed_channels.py
verdict: Mismatch or Unsafe
why: an index outside of the tile finds anything.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reverse_kernel(x_ptr, order_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    order = tl.load(order_ptr + c, mask=c < cols, other=0).to(tl.int32)
    found = tl.gather(x, tl.where(order == 0, -1, order), 0)
    tl.store(out_ptr + row * cols + c, found * 0.5, mask=c < cols)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("order", torch.arange(channels).flip(0))

    def forward(self, x):
        out = torch.empty_like(x)
        reverse_kernel[(x.shape[0],)](x, self.order, out, x.shape[1], BLOCK=64)
        return out
