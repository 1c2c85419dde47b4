import torch
import torch.nn as nn


class Model(nn.Module):
    """Channels in an order that the module registers: reversed, to begin with."""

    def __init__(self, channels):
        super().__init__()
        self.register_buffer("order", torch.arange(channels).flip(0))

    def forward(self, x):
        return x[:, self.order] * 0.5


def get_inputs():
    return [torch.randn(20, 36)]


def get_init_inputs():
    return [36]
