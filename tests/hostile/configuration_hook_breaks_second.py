"""The hook of the second configuration doubles a factor.

reference: ../tasks/scaled_columns.py
verdict: Mismatch
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def bad(args):
    args["w2_ptr"].fill_(2.0)


def good(args):
    args["w2_ptr"].fill_(1.0)


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, pre_hook=good), triton.Config({"BLOCK": 512}, pre_hook=bad)], key=["n"])
@triton.jit
def k(x_ptr, w_ptr, w2_ptr, out_ptr, n, C, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * tl.load(w_ptr + i % C, mask=i < n) * tl.load(w2_ptr), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        out = torch.empty_like(x)
        one = x.new_empty(1)
        k[lambda m: (triton.cdiv(1024, m["BLOCK"]),)](x, self.w, one, out, 1024, 64)
        return out
