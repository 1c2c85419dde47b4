import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x * 2.0) + 1.0


def get_inputs():
    return [torch.randn(64, 48)]


def get_init_inputs():
    return []
