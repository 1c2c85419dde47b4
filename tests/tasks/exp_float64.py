import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x)


def get_inputs():
    return [torch.randn(60, 130, dtype=torch.float64)]


def get_init_inputs():
    return []
