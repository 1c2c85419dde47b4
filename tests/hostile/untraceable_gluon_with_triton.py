"""A Triton kernel does one half of the work and a Gluon kernel with shared memory the other.

reference: ../tasks/relu.py
verdict: Untraceable
rule: not-traceable
why: Gluon kernels are not supported yet; one among others is enough.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@gluon.jit
def relu_kernel(x_ptr, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    tile = gl.allocate_shared_memory(gl.float32, [BLOCK], shared, gl.load(x_ptr + i, mask=i < n))
    gl.store(x_ptr + i, gl.maximum(tile.load(layout), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 1024),)
        copy_kernel[grid](x, out, x.numel(), BLOCK=1024)
        relu_kernel[grid](out, out.numel(), BLOCK=1024)
        return out
