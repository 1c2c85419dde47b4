import torch
import torch.nn as nn

BATCH = 2
LENGTH = 7
HEADS = 4
KV_HEADS = 2
WIDTH = 32


def rotate(x, angle):
    real, imaginary = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos()[None, :, None], angle.sin()[None, :, None]
    return torch.stack([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1).flatten(-2)


class Model(nn.Module):
    def forward(self, q, k, angle):
        return rotate(q, angle), rotate(k, angle)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, HEADS, WIDTH), torch.randn(BATCH, LENGTH, KV_HEADS, WIDTH), torch.rand(LENGTH, WIDTH // 2) * 6.0]


def get_init_inputs():
    return []
