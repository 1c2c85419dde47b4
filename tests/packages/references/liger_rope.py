import torch
import torch.nn as nn

BATCH = 2
HEADS = 4
KV_HEADS = 2
LENGTH = 9
WIDTH = 32


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class Model(nn.Module):
    def forward(self, q, k, angle):
        angle = torch.cat([angle, angle], dim=-1)
        return rotate(q, angle.cos(), angle.sin()), rotate(k, angle.cos(), angle.sin())


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH), torch.randn(BATCH, KV_HEADS, LENGTH, WIDTH), torch.rand(LENGTH, WIDTH // 2) * 6.0]


def get_init_inputs():
    return []
