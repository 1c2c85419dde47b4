import torch
import torch.nn as nn

BATCH = 6
LENGTH = 70


class Model(nn.Module):
    """Scores, scaled, with everything above the diagonal at -1e9."""

    def forward(self, scores):
        n = scores.shape[-1]
        above = torch.ones(n, n, dtype=torch.bool, device=scores.device).triu(1)
        return (scores * 0.125).masked_fill(above, -1e9)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, LENGTH)]


def get_init_inputs():
    return []
