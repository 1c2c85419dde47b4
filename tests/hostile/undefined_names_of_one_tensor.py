"""A sliding window whose names begin as one tensor: Triton's front end takes them for one in the loop.

reference: ../tasks/causal_conv1d.py
verdict: Mismatch
why: Triton 3.6 carries the last of three names through the loop; the others stay zero in the machine code, too.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(x_ptr, w_ptr, b_ptr, y_ptr, steps, width, BLOCK: tl.constexpr):
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < width
    w0 = tl.load(w_ptr + c * 4, mask=mask)
    w1 = tl.load(w_ptr + c * 4 + 1, mask=mask)
    w2 = tl.load(w_ptr + c * 4 + 2, mask=mask)
    w3 = tl.load(w_ptr + c * 4 + 3, mask=mask)
    b = tl.load(b_ptr + c, mask=mask)
    x0 = tl.zeros((BLOCK,), tl.float32)
    x1, x2 = x0, x0
    base = tl.program_id(0) * steps * width + c
    for t in range(steps):
        x3 = tl.load(x_ptr + base + t * width, mask=mask)
        y = b + x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3
        tl.store(y_ptr + base + t * width, y / (1 + tl.exp(-y)), mask=mask)
        x0, x1, x2 = x1, x2, x3


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(40, 40, 4, groups=40, padding=3)

    def forward(self, x):
        y = torch.empty_like(x)
        conv_kernel[(x.shape[0], triton.cdiv(x.shape[2], 32))](
            x, self.conv.weight, self.conv.bias, y, x.shape[1], x.shape[2], BLOCK=32
        )
        return y
