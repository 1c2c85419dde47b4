"""The reference's layers, with a docstring that talks of Triton.

reference: ../tasks/linear_gelu.py
verdict: Disallowed
rule: no-launch
why: there is no launch; the source text is not evidence.
"""
import torch.nn as nn
import triton  # noqa: F401


class ModelNew(nn.Module):
    """Fused Triton linear + GELU (tl.dot, tl.load, tl.store)."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.act = nn.GELU()

    def forward(self, x):
        return self.act(self.linear(x))
