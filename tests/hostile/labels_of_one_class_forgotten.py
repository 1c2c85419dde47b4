"""A sum weighted by class that gives class two the weight of the others.

reference: ../tasks/weights_by_label.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, label_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0)
    label = tl.load(label_ptr + row * cols + c, mask=c < cols, other=0.0)
    weight = tl.where(label == 2.25, 3.0, tl.where(label == 0.0, 0.5, 1.0))
    tl.store(out_ptr + row, tl.sum(x * weight, 0))


class ModelNew(nn.Module):
    def forward(self, x, other):
        out = x.new_empty(x.shape[0])
        row_kernel[(x.shape[0],)](x, other, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
