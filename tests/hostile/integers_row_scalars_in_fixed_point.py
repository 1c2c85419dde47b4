"""Under `strict`: a kernel leaves each row's sum as fixed point, torch halves it as an integer, a kernel divides by it.

reference: ../tasks/normalize.py
verdict: Disallowed or Mismatch
rule: aten-compute or values
policy: strict
why: arithmetic on a kernel's numbers is arithmetic, however few they are.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, q_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    tl.store(q_ptr + row, (tl.sqrt(tl.sum(x * x, 0)).to(tl.float64) * 34359738368.0).to(tl.int64))


@triton.jit
def scale_kernel(x_ptr, q_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    norm = (tl.load(q_ptr + row).to(tl.float64) / 17179869184.0).to(tl.float32)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols)
    tl.store(out_ptr + row * cols + c, x / tl.maximum(norm, 1e-12), mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        q = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        block = triton.next_power_of_2(x.shape[1])
        norm_kernel[(x.shape[0],)](x, q, x.shape[1], BLOCK=block)
        q = torch.div(q, 2, rounding_mode="floor")
        out = torch.empty_like(x)
        scale_kernel[(x.shape[0],)](x, q, out, x.shape[1], BLOCK=block)
        return out
