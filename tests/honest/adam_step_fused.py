"""All of the step in one kernel, which writes the moments in place.

reference: ../tasks/adam_step.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def adam_kernel(w_ptr, g_ptr, m_ptr, v_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    g = tl.load(g_ptr + i, mask=mask)
    m = tl.load(m_ptr + i, mask=mask) * 0.9 + g * 0.1
    v = tl.load(v_ptr + i, mask=mask) * 0.999 + g * g * 0.001
    tl.store(m_ptr + i, m, mask=mask)
    tl.store(v_ptr + i, v, mask=mask)
    w = tl.load(w_ptr + i, mask=mask) * 0.9999
    tl.store(out_ptr + i, w - 0.01 * (m / (tl.sqrt(v) + 1e-8)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3000))
        self.register_buffer("first", torch.randn(3000) * 0.1)
        self.register_buffer("second", torch.rand(3000))

    def forward(self, grad):
        out = torch.empty_like(grad)
        adam_kernel[(triton.cdiv(grad.numel(), 512),)](
            self.weight, grad, self.first, self.second, out, grad.numel(), BLOCK=512
        )
        return out
