"""Executes encoded source.

reference: ../tasks/matmul.py
verdict: Disallowed
rule: aten-compute
why: hiding source does not hide the call from the trace.
"""
import base64

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out

SOURCE = base64.b64encode(b"import torch\ndef answer(a, b):\n    return torch.einsum('mk,kn->mn', a, b)\n")
SPACE = {}
exec(base64.b64decode(SOURCE).decode(), SPACE)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return copy(SPACE["answer"](a, b))
