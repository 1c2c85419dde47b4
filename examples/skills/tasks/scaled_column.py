import torch
from torch import nn


class Model(nn.Module):
    def forward(self, column):
        return torch.relu(column * 0.75) + 2.5


def get_inputs():
    return [torch.randn(513, 1)]


def get_init_inputs():
    return []
