"""relu in torch's integer arithmetic over a copy of the bits; a kernel looks at the result as floats again.

reference: ../tasks/relu.py
verdict: Disallowed
rule: aten-compute or aten-share
policy: strict
why: integer arithmetic over a float's bits is arithmetic over floats.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def floats_kernel(bits_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = tl.load(bits_ptr + i, mask=i < n)
    tl.store(out_ptr + i, bits.to(tl.float32, bitcast=True), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        bits = x.view(torch.int32).clone()
        bits = torch.bitwise_and(bits, torch.bitwise_not(bits >> 31))
        out = torch.empty_like(x)
        floats_kernel[(triton.cdiv(x.numel(), 1024),)](bits, out, x.numel(), BLOCK=1024)
        return out
