"""Takes the value at the smallest score.

reference: ../tasks/gather_by_argmax.py
verdict: Mismatch
rule: values
why: another place.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pick_kernel(score_ptr, value_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.load(score_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    at = tl.min(tl.where(s == tl.min(s, 0), c, BLOCK), 0)
    tl.store(out_ptr + row, tl.load(value_ptr + row * cols + at))


class ModelNew(nn.Module):
    def forward(self, scores, values):
        out = torch.empty((scores.shape[0], 1), device=scores.device, dtype=values.dtype)
        pick_kernel[(scores.shape[0],)](scores, values, out, scores.shape[1], BLOCK=triton.next_power_of_2(scores.shape[1]))
        return out
