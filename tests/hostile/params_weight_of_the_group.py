"""GroupNorm that scales all channels of a group by the weight of its first.

reference: ../tasks/group_norm.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, size, per, groups, channels_per, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * size + i, mask=i < size, other=0.0)
    mean = tl.sum(x, 0) / size
    d = tl.where(i < size, x - mean, 0.0)
    rstd = 1 / tl.sqrt_rn(tl.sum(d * d, 0) / size + eps)
    first = (pid % groups) * channels_per
    w = tl.load(w_ptr + first)
    b = tl.load(b_ptr + first + i // per, mask=i < size, other=0.0)
    tl.store(out_ptr + pid * size + i, d * rstd * w + b, mask=i < size)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        n, c, h, w = x.shape
        groups = self.norm.num_groups
        size = c // groups * h * w
        out = torch.empty_like(x)
        norm_kernel[(n * groups,)](
            x, self.norm.weight, self.norm.bias, out, size, h * w, groups, c // groups, self.norm.eps,
            BLOCK=triton.next_power_of_2(size),
        )
        return out
