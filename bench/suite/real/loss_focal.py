import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 65536
ALPHA = 0.25
GAMMA = 2


class Model(nn.Module):
    """Binary cross entropy that cares less for what is easy."""

    def forward(self, logits, target):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        hit = p * target + (1 - p) * (1 - target)
        weight = ALPHA * target + (1 - ALPHA) * (1 - target)
        return (weight * ce * (1 - hit) ** GAMMA).mean()


def get_inputs():
    return [torch.randn(ROWS, 8), (torch.rand(ROWS, 8) > 0.9).float()]


def get_init_inputs():
    return []
