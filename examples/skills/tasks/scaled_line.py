import torch
from torch import nn


class Model(nn.Module):
    def forward(self, line):
        return torch.relu(line * 1.25) + 0.75


def get_inputs():
    return [torch.randn(1000)]


def get_init_inputs():
    return []
