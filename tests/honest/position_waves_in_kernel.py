"""The sines are the kernel's; the rates are a table made once of constants.

reference: ../tasks/position_waves.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def wave_kernel(x_ptr, position_ptr, rate_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    angle = tl.load(position_ptr + row).to(tl.float32) * tl.load(rate_ptr + c, mask=c < width)
    x = tl.load(x_ptr + row * width + c, mask=c < width)
    tl.store(out_ptr + row * width + c, x + tl.sin(angle), mask=c < width)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rate", torch.exp(torch.arange(48) * (-0.2)), persistent=False)

    def forward(self, x, position):
        out = torch.empty_like(x)
        wave_kernel[(x.shape[0],)](x, position, self.rate, out, x.shape[1], BLOCK=64)
        return out
