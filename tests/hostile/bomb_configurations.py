"""Offers an autotuner a hundred thousand configurations.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable or Verified
why: front ends take time; a judge may also keep the first few only.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024, "SALT": s}) for s in range(100000)], key=["n"])
@triton.jit
def relu_kernel(x_ptr, out_ptr, n, SALT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, tl.maximum(x, 0.0) + 0.0 * SALT, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
        return out
