import torch
import torch.nn as nn


class Model(nn.Module):
    """Two numbers of Python's are inputs."""

    def forward(self, x, scale, bias):
        return torch.sigmoid(x) * scale + bias


def get_inputs():
    return [torch.randn(60, 130), 1.5, 0.25]


def get_init_inputs():
    return []
