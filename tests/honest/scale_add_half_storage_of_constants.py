"""A buffer the reference does not have, half precision where that is exact, and .to(device) calls all over.

reference: ../tasks/scale_add.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_add(x_ptr, y_ptr, alpha_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    alpha = tl.load(alpha_ptr).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.load(y_ptr + offsets, mask=mask) + alpha * x, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.register_buffer("alpha", torch.tensor([alpha], dtype=torch.float32).half(), persistent=False)
        self.to("cuda")

    def forward(self, x, y):
        device = torch.device("cuda", torch.cuda.current_device())
        x, y = x.to(device), y.to(device)
        out = torch.empty_like(y, memory_format=torch.contiguous_format)
        scale_add[(triton.cdiv(out.numel(), 1024),)](x, y, self.alpha, out, out.numel(), BLOCK=1024)
        return out
