import torch
import torch.nn as nn


class Model(nn.Module):
    """Shrinks probabilities towards nought."""

    def forward(self, p):
        return torch.sign(p) * torch.relu(p.abs() - 0.25)


def get_inputs():
    return [torch.rand(64, 200)]


def get_init_inputs():
    return []
