"""A heuristic below an autotuner writes the answer with torch.softmax; the kernel passes it on.

reference: ../tasks/softmax.py
verdict: Disallowed
rule: aten-compute
why: a heuristic is Python that runs in forward.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def block_of(args):
    args["soft_ptr"].copy_(torch.softmax(args["x_ptr"], -1))
    return 1024


@triton.autotune(configs=[triton.Config({}, num_warps=2), triton.Config({}, num_warps=4)], key=["n"])
@triton.heuristics({"BLOCK": block_of})
@triton.jit
def pass_kernel(x_ptr, soft_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.load(soft_ptr + i, mask=i < n) + tl.minimum(x * 0.0, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        soft, out = torch.empty_like(x), torch.empty_like(x)
        pass_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, soft, out, x.numel())
        return out
