"""Calls a function of a bitcode library of its own, as libdevice's are called.

reference: ../tasks/relu.py
verdict: Disallowed or CompileFailed or Untraceable
why: only libdevice's functions are known; no machine code of a candidate's is linked.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language import core


@core.extern
def own_relu(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("nereid_hostile_relu", core.dtype("fp32"))}
    return core.extern_elementwise("hostile", "/tmp/nereid_hostile.bc", [x], table, is_pure=True, _semantic=_semantic)


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, own_relu(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
