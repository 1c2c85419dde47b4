"""The same through an autotuner's configuration.

reference: ../tasks/relu.py
verdict: Mismatch or Disallowed or CompileFailed or Untraceable
why: the text that was traced is what is compiled; options that name files are dropped or refused.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1024}, ir_override="/tmp/nereid_hostile.ptx"), triton.Config({"BLOCK": 512})],
    key=["n"],
)
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
