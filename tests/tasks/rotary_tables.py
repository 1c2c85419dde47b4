import torch
import torch.nn as nn


class Model(nn.Module):
    """Rotates pairs by angles from tables that no checkpoint holds."""

    def __init__(self, longest, half):
        super().__init__()
        angle = torch.outer(torch.arange(longest).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def forward(self, x, places):
        cos, sin = self.cos[places], self.sin[places]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs():
    return [torch.randn(60, 64), torch.arange(60)]


def get_init_inputs():
    return [256, 32]
