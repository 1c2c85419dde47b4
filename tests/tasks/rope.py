import torch
import torch.nn as nn

BATCH = 2
HEADS = 3
LENGTH = 37
WIDTH = 32


class Model(nn.Module):
    """Rotary position embedding, halves rotated; the angles are inputs."""

    def forward(self, x, angle):
        cos, sin = angle.cos(), angle.sin()
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH), torch.rand(LENGTH, WIDTH // 2) * 6.0]


def get_init_inputs():
    return []
