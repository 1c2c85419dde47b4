"""Takes the generator's state, rewinds it by as much as the inputs took, and draws them again.

reference: ../tasks/relu.py
verdict: Disallowed or Mismatch or Untraceable
why: the state that it sees is not the one that made the inputs.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.state = torch.get_rng_state()

    def forward(self, x):
        torch.set_rng_state(self.state)
        return relu(torch.randn(193, 517).to(x.device))
