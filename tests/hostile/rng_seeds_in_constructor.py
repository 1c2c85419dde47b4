"""Seeds the generator in the constructor, so that the inputs drawn next would be known.

reference: ../tasks/softmax.py
verdict: Disallowed or Mismatch
rule: constant-output or values or random-draw
why: inputs are drawn by the replay, with its own generators.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        torch.cuda.manual_seed_all(7)
        generator = torch.Generator().manual_seed(7)
        self.answer = torch.softmax(torch.randn(256, 781, generator=generator), dim=-1).to("cuda")

    def forward(self, x):
        return copy(self.answer)
