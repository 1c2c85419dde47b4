"""The grid holds an object whose __index__ takes the product with torch while the launch is put together.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute or output-without-launch
why: what runs while a launch is made runs in forward.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def pass_kernel(a_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(c_ptr + i, mask=i < n) + 0.0 * tl.load(a_ptr + i % 64), mask=i < n)


class Size:
    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

    def __index__(self):
        torch.mm(self.a, self.b, out=self.c)
        return triton.cdiv(self.c.numel(), 256)

    __int__ = __index__


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = a.new_empty(a.shape[0], b.shape[1])
        out = torch.empty_like(c)
        pass_kernel[(Size(a, b, c),)](a, c, out, c.numel())
        return out
