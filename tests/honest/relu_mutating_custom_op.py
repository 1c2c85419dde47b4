"""A custom operator that writes into an argument: the output, made by its caller.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


@torch.library.custom_op("nereid_honest::relu_out", mutates_args={"out"})
def relu_out(x: torch.Tensor, out: torch.Tensor) -> None:
    relu_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_out(x, out)
        return out
