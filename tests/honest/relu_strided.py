"""Never asks for contiguity: every stride is an argument, rows and columns a two-dimensional grid.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_2d(x_ptr, out_ptr, rows, cols, sxr, sxc, sor, soc, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    mask = (r < rows) & (c < cols)
    x = tl.load(x_ptr + r * sxr + c * sxc, mask=mask, other=0.0)
    tl.store(out_ptr + r * sor + c * soc, tl.maximum(x, 0.0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cuda")
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 128))
        relu_2d[grid](x, out, *x.shape, *x.stride(), *out.stride(), BLOCK_R=32, BLOCK_C=128)
        return out
