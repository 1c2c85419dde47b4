"""An autotuned two-pass row sum whose grid function makes the scratch's shape from the configuration: views and empties alone.

reference: ../tasks/row_sum.py
verdict: Verified
policy: strict
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (256, 1024)], key=["cols"])
@triton.jit
def sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)

        def grid(meta):
            rows = x.view(-1, x.shape[-1]).shape[0]
            torch.empty(meta["BLOCK"], device=x.device)
            return (rows,)

        sum_kernel[grid](x, out, x.shape[1])
        return out
