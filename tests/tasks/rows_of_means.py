import torch
import torch.nn as nn


class Model(nn.Module):
    """Every element becomes the mean of its row."""

    def forward(self, x):
        return x.mean(-1, keepdim=True).repeat(1, x.shape[1])


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
