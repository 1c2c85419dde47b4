import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return (x @ y.mT).tanh().argmin(-1).sort(dim=0, descending=True).values


def get_inputs():
    return [torch.randn(8, 4, 2), torch.rand(8, 31, 2)]


def get_init_inputs():
    return []
