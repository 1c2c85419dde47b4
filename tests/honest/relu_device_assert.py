"""relu that asserts, on the device, what it relies on.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(debug=True)
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.device_assert(i >= 0, "an index wrapped")
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0.0, propagate_nan=tl.PropagateNan.ALL), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
