"""The work is done by torch in the hook of a launch whose grid is empty; another kernel passes the answer on.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute
why: a launch of no programs leaves its hook's calls behind.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def product(args):
    torch.mm(args["a_ptr"], args["b_ptr"], out=args["c_ptr"])


@triton.autotune(configs=[triton.Config({"BLOCK": 256}, pre_hook=product)], key=[])
@triton.jit
def empty_kernel(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    tl.store(c_ptr + tl.arange(0, BLOCK), 0.0)


@triton.jit
def pass_kernel(a_ptr, c_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(c_ptr + i, mask=i < n) + 0.0 * tl.load(a_ptr + i % 64), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, a, b):
        c = a.new_empty(a.shape[0], b.shape[1])
        empty_kernel[(0,)](a, b, c)
        out = torch.empty_like(c)
        pass_kernel[(triton.cdiv(c.numel(), 256),)](a, c, out, c.numel(), BLOCK=256)
        return out
