"""A table of addresses that ctypes holds.

reference: ../tasks/relu_plus.py
verdict: Verified
"""
import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def k(table, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = tl.load(table).to(tl.pointer_type(tl.float32), bitcast=True)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0) + 1, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        held = (ctypes.c_int64 * 1)(x.data_ptr())
        table = torch.frombuffer(held, dtype=torch.int64).to(x.device)
        k[(triton.cdiv(x.numel(), 1024),)](table, out, x.numel(), BLOCK=1024)
        return out
