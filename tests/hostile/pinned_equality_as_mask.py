"""Which pairs of keys are equal is found in Python and reaches the kernel as a mask between one and nought.

reference: ../tasks/equal_pairs.py
verdict: Disallowed
rule: host-computed
why: a choice between constants says what its mask says.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def choose_kernel(mask_ptr, keys_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    equal = tl.load(mask_ptr + i, mask=i < n)
    shown = tl.load(keys_ptr + i % 8)
    tl.store(out_ptr + i, tl.where(equal & (shown > -1), 1.0, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, keys):
        values = keys.tolist()
        mask = torch.tensor([[a == b for b in values] for a in values], device=keys.device)
        out = torch.empty(mask.shape, device=keys.device)
        choose_kernel[(triton.cdiv(out.numel(), 256),)](mask, keys, out, out.numel(), BLOCK=256)
        return out
