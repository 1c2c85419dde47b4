import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
HEADS = 8
LENGTH = 2048
SIZE = 64


class Model(nn.Module):
    """Attention in time linear in the length: keys and values are summed first."""

    def forward(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        summed = k.transpose(-2, -1) @ v
        norm = (q * k.sum(dim=-2, keepdim=True)).sum(-1, keepdim=True)
        return (q @ summed) / (norm + 1e-6)


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, SIZE) for _ in range(3)]


def get_init_inputs():
    return []
