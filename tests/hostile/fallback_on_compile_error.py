"""try: a kernel that cannot be compiled; except: torch.

reference: ../tasks/softmax.py
verdict: CompileFailed or Disallowed
rule: triton-front-end or no-launch
why: what the front end refuses never runs; the rest is torch.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK + 1)
    tl.store(out_ptr + c, tl.softmax_that_does_not_exist(tl.load(x_ptr + c)))


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            out = torch.empty_like(x)
            softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
            return out
        except BaseException:
            return torch.softmax(x, dim=-1)
