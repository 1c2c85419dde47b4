import torch
import torch.nn as nn


def f():
    x = torch.randn(16, 64)
    return [x, x]


class Model(nn.Module):
    def forward(self, x, y):
        return x.exp() * y


def get_inputs():
    return f()


def get_init_inputs():
    return []
