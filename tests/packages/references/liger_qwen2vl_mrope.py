import torch
import torch.nn as nn

BATCH = 2
HEADS = 4
KV_HEADS = 2
LENGTH = 9
WIDTH = 32
SECTIONS = [4, 6, 6]


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def sections(table):
    parts = table.split(SECTIONS * 2, dim=-1)
    return torch.cat([part[i % 3] for i, part in enumerate(parts)], dim=-1)[:, None]


class Model(nn.Module):
    def forward(self, q, k, angle):
        angle = torch.cat([angle, angle], dim=-1)
        cos, sin = sections(angle.cos()), sections(angle.sin())
        return rotate(q, cos, sin), rotate(k, cos, sin)


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH), torch.randn(BATCH, KV_HEADS, LENGTH, WIDTH), torch.rand(3, BATCH, LENGTH, WIDTH // 2) * 6.0]


def get_init_inputs():
    return []
