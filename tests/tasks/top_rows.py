"""The rows whose norm is largest, in that order."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        chosen = x.square().sum(1).topk(16).indices
        return x[chosen].cumsum(0)


def get_inputs():
    return [torch.randn(128, 24)]


def get_init_inputs():
    return []
