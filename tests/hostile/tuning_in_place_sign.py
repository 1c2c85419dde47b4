"""A sign changed in place: an even number of runs leaves what one run does not.

reference: ../tasks/negative.py
verdict: Mismatch
rule: values
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def in_place_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(out_ptr + i, mask=i < n)
    tl.store(out_ptr + i, -x, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        n = out.numel()
        in_place_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, n)
        return out
