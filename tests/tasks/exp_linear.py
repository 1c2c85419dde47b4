import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 32)

    def forward(self, x):
        return torch.sigmoid(self.linear(torch.exp(x)))


def get_inputs():
    return [torch.randn(64, 1)]


def get_init_inputs():
    return []
