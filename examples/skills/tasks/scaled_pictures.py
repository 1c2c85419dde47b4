import torch
from torch import nn


class Model(nn.Module):
    def forward(self, pictures):
        return torch.relu(pictures * 4.0) + 0.5


def get_inputs():
    return [torch.randn(2, 3, 16, 17)]


def get_init_inputs():
    return []
