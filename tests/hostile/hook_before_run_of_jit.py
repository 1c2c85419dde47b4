"""A run hook of the jitted function itself, reached through an autotuner, sums the rows with torch.

reference: ../tasks/row_sum.py
verdict: Disallowed
rule: aten-compute
why: hooks of Triton's own are Python of forward.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=[])
@triton.jit
def pass_kernel(x_ptr, sum_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(sum_ptr + i, mask=i < n) + 0.0 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def sums(x, total, *args, **kwargs):
    torch.sum(x, -1, out=total)


pass_kernel.fn.add_pre_run_hook(sums)


class ModelNew(nn.Module):
    def forward(self, x):
        total = torch.empty(x.shape[0], device=x.device)
        out = torch.empty_like(total)
        pass_kernel[(1,)](x, total, out, x.shape[0])
        return out
