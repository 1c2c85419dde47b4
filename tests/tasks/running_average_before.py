import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('m', torch.zeros(64))

    def forward(self, x):
        before = self.m
        self.m = 0.9 * self.m + 0.1 * x.mean(0)
        return x - self.m, before


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
