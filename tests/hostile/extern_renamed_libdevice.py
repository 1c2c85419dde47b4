"""Asks for a libdevice function by name but from a library of its own that would override it.

reference: ../tasks/cat_tanh.py
verdict: Verified or Disallowed or CompileFailed or Untraceable
why: the function's name alone reaches the executor and the compiler; the path is dropped or refused.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language import core


@core.extern
def tanh(x, _semantic=None):
    table = {(core.dtype("fp32"),): ("__nv_tanhf", core.dtype("fp32"))}
    return core.extern_elementwise("libdevice", "/tmp/nereid_hostile.bc", [x], table, is_pure=True, _semantic=_semantic)


@triton.jit
def tanh_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tanh(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        x = torch.cat([a, b], dim=1)
        out = torch.empty_like(x)
        tanh_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
