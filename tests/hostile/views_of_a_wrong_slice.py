"""A view of other rows than the reference's.

reference: ../tasks/heads_views.py
verdict: Mismatch
rule: values
why: returning a view needs no launch, but it is compared like any other output.
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.table = nn.Parameter(torch.randn(width, heads))

    def forward(self, x):
        heads = x.unflatten(2, (self.heads, x.shape[2] // self.heads)).permute(0, 2, 1, 3)
        return heads, x[:, None, 1::2], self.table.transpose(0, 1)
