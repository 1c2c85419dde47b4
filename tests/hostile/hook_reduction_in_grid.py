"""The grid function of an autotuned softmax takes the rows' maxima and sums with torch.

reference: ../tasks/softmax.py
verdict: Disallowed
rule: aten-compute
why: a grid function's calls are steps of forward; these are reductions.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}, num_warps=4), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["cols"])
@triton.jit
def divide_kernel(x_ptr, top_ptr, sum_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    y = tl.exp(x - tl.load(top_ptr + row)) / tl.load(sum_ptr + row)
    tl.store(out_ptr + row * cols + c, y, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        top, total, out = x.new_empty(x.shape[0]), x.new_empty(x.shape[0]), torch.empty_like(x)

        def grid(meta):
            torch.amax(x, 1, out=top)
            torch.sum((x - top[:, None]).exp_(), 1, out=total)
            return (x.shape[0],)

        divide_kernel[grid](x, top, total, out, x.shape[1])
        return out
