"""Host descriptors read and written at coordinates before their start, in both dimensions.

reference: ../tasks/relu_wide.py
verdict: Unsafe
rule: out-of-bounds
why: a GPU's bulk store from a negative coordinate is an illegal instruction; loads leave out what is before.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def relu_kernel(x_desc, out_desc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M - BLOCK_M // 2
    n = tl.program_id(1) * BLOCK_N - BLOCK_N // 2
    out_desc.store([m, n], tl.maximum(x_desc.load([m, n]), 0.0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        x_desc = TensorDescriptor.from_tensor(x, [32, 64])
        out_desc = TensorDescriptor.from_tensor(out, [32, 64])
        grid = (triton.cdiv(x.shape[0], 32) + 1, triton.cdiv(x.shape[1], 64) + 1)
        relu_kernel[grid](x_desc, out_desc, BLOCK_M=32, BLOCK_N=64)
        return out
