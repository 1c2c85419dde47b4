"""PyTorch copies what the reference returns as a view; no kernel is launched.

reference: ../tasks/heads_views.py
verdict: Disallowed
rule: no-launch
why: where nothing is computed a view may be returned without a launch, but a copy is work that was not asked for.
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
        return heads.clone(), x[:, None, ::2], self.table.transpose(0, 1)
