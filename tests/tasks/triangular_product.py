import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.tril(a) @ b + (a @ b)


def get_inputs():
    return [torch.randn(64, 64).tril(), torch.randn(64, 32)]


def get_init_inputs():
    return []
