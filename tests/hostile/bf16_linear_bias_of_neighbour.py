"""The bias of the next column.

reference: ../tasks/linear_bf16.py
verdict: Mismatch
rule: values
why: each column is off by its bias.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_kernel(x_ptr, w_ptr, b_ptr, out_ptr, IN, OUT, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, IN, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * IN + k[None, :])
        w = tl.load(w_ptr + n[None, :] * IN + k[:, None])
        acc += tl.dot(x, w)
    acc += tl.load(b_ptr + (n + 1) % OUT)[None, :]
    tl.store(out_ptr + m[:, None] * OUT + n[None, :], tl.maximum(acc, 0).to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(256, 128).to(torch.bfloat16)

    def forward(self, x):
        out = torch.empty(x.shape[0], 128, device=x.device, dtype=x.dtype)
        linear_kernel[(x.shape[0] // 32, 4)](x, self.linear.weight, self.linear.bias, out, 256, 128, BLOCK=32, BLOCK_K=64)
        return out
