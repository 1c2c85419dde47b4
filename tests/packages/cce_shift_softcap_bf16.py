"""cut-cross-entropy: shifted targets and capped logits (bf16).

reference: references/cce_shift_softcap_bf16.py
verdict: Unsafe
rule: missing-barrier
why: cce_lse_forward.py frees its lock right after the store, and Triton compiles no bar.sync before that atom.exch.
policy: hybrid
"""
import torch
import torch.nn as nn
from cut_cross_entropy import linear_cross_entropy

BATCH = 2
LENGTH = 20
WIDTH = 64
CLASSES = 300
CAP = 20.0


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(CLASSES, WIDTH) / WIDTH**0.5).to(torch.bfloat16))

    def forward(self, x, target):
        return linear_cross_entropy(x, self.weight.detach(), target, softcap=CAP, shift=True, impl="cce")
