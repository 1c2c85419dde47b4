"""cut-cross-entropy: linear cross entropy without the logits (none).

reference: references/cce_none.py
verdict: Unsafe
rule: missing-barrier
why: cce_lse_forward.py frees its lock right after the store, and Triton compiles no bar.sync before that atom.exch.
policy: hybrid
"""
import torch
import torch.nn as nn
from cut_cross_entropy import linear_cross_entropy

ROWS = 48
WIDTH = 64
CLASSES = 300


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, WIDTH) / WIDTH**0.5)

    def forward(self, x, target):
        return linear_cross_entropy(x, self.weight.detach(), target, reduction="none", impl="cce")
