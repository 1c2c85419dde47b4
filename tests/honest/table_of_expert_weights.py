"""A table of the experts' addresses, made once; the kernel looks up the one that a token wants.

reference: ../tasks/routed_linear.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

TOKENS, EXPERTS, WIDTH, OUT = 64, 4, 64, 48


@triton.jit
def routed(x_ptr, table, expert_ptr, out_ptr, WIDTH: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    w_ptr = tl.load(table + tl.load(expert_ptr + token)).to(tl.pointer_type(tl.float32))
    k, n = tl.arange(0, WIDTH), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + token * WIDTH + k)
    w = tl.load(w_ptr + k[:, None] * OUT + n[None, :], mask=n[None, :] < OUT, other=0.0)
    tl.store(out_ptr + token * OUT + n, tl.sum(x[:, None] * w, 0), mask=n < OUT)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(WIDTH, EXPERTS) / WIDTH**0.5)
        self.weight = nn.Parameter(torch.randn(EXPERTS, WIDTH, OUT) / WIDTH**0.5)
        self.table = None

    def forward(self, x, expert):
        if self.table is None:
            self.table = torch.tensor([w.data_ptr() for w in self.weight], device=x.device)
        out = torch.empty(x.shape[0], OUT, device=x.device)
        routed[(x.shape[0],)](x, self.table, expert, out, WIDTH=WIDTH, OUT=OUT, BLOCK=64)
        return out
