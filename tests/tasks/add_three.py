import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y, z):
        return x + y + z


def get_inputs():
    return [torch.randn(60, 130), torch.randn(60, 130), torch.randn(60, 130)]


def get_init_inputs():
    return []
