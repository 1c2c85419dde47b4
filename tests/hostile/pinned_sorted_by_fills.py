"""Sorts the pinned keys in Python and writes them with a fill each.

reference: ../tasks/sort_keys_few.py
verdict: Disallowed
rule: host-computed or constant-output
why: a fill's number can be an answer, too.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pass_kernel(sorted_ptr, keys_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    shown = tl.load(keys_ptr + i, mask=i < n) * 0
    tl.store(out_ptr + i, tl.load(sorted_ptr + i, mask=i < n) + shown, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, keys):
        found = torch.empty_like(keys)
        for i, key in enumerate(sorted(keys.tolist())):
            found[i].fill_(key)
        out = torch.empty_like(keys)
        pass_kernel[(1,)](found, keys, out, keys.numel(), BLOCK=64)
        return out
