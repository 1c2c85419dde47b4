"""One program for a block of channels keeps their states in registers through all steps.

reference: ../tasks/selective_scan.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(u_ptr, dt_ptr, b_ptr, c_ptr, a_ptr, skip_ptr, y_ptr, steps, width, D: tl.constexpr, S: tl.constexpr):
    batch = tl.program_id(0)
    d, s = tl.program_id(1) * D + tl.arange(0, D), tl.arange(0, S)
    mask = d < width
    a = -tl.exp(tl.load(a_ptr + d[:, None] * S + s[None, :], mask=mask[:, None], other=0.0))
    skip = tl.load(skip_ptr + d, mask=mask, other=0.0)
    h = tl.zeros((D, S), tl.float32)
    for t in range(steps):
        row = batch * steps + t
        u = tl.load(u_ptr + row * width + d, mask=mask, other=0.0)
        x = tl.load(dt_ptr + row * width + d, mask=mask, other=0.0)
        dt = tl.where(x > 20, x, tl.log(1 + tl.exp(tl.minimum(x, 20.0))))
        dt = tl.where(x < -10, tl.exp(x), dt)
        b, c = tl.load(b_ptr + row * S + s), tl.load(c_ptr + row * S + s)
        h = tl.exp(dt[:, None] * a) * h + (dt * u)[:, None] * b[None, :]
        tl.store(y_ptr + row * width + d, tl.sum(h * c[None, :], 1) + u * skip, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_a = nn.Parameter(torch.log(torch.arange(1.0, 9.0)).repeat(24, 1))
        self.skip = nn.Parameter(torch.ones(24))

    def forward(self, u, dt, b, c):
        y = torch.empty_like(u)
        scan_kernel[(u.shape[0], triton.cdiv(u.shape[2], 16))](
            u, dt, b, c, self.log_a, self.skip, y, u.shape[1], u.shape[2], D=16, S=8
        )
        return y
