import torch
import torch.nn as nn


class Model(nn.Module):
    """A mean under weights, which add up to one in the samples."""

    def forward(self, x, w):
        return (x * w).sum(-1) / w.sum(-1)


def get_inputs():
    return [torch.randn(50, 60), torch.softmax(torch.randn(50, 60), -1)]


def get_init_inputs():
    return []
