from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

SCALE = 0.5


def halved(x):
    return x * SCALE


class Gate(nn.Module):
    """Self-contained: a function and a constant of its file."""

    def __init__(self, dim: int, bias: bool = True):
        super().__init__()
        self.proj = nn.Linear(dim, 2 * dim, bias=bias)

    def forward(self, x):
        value, gate = self.proj(x).chunk(2, dim=-1)
        return halved(value) * torch.sigmoid(gate)


class SameGate(nn.Module):
    """Another text for Gate's computation."""

    def __init__(self, dim):
        super().__init__()
        self.both = nn.Linear(dim, dim * 2)

    def forward(self, inputs):
        a, b = self.both(inputs).chunk(2, dim=-1)
        return a * 0.5 * b.sigmoid()


class ConvBlock(nn.Module):
    def __init__(self, in_channels, out_channels, norm_layer=partial(nn.GroupNorm, 2), act=nn.ReLU):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, stride=2, padding=1)
        self.norm = norm_layer(out_channels)
        self.act = act(inplace=True)

    def forward(self, x):
        return F.max_pool2d(self.act(self.norm(self.conv(x))), 2)


class Table(nn.Module):
    def __init__(self, num_embeddings, dim):
        super().__init__()
        self.embed = nn.Embedding(num_embeddings, dim)
        self.register_buffer("order", torch.arange(9))

    def forward(self, token_ids):
        return F.layer_norm(self.embed(token_ids) + self.embed(self.order), (32,))


class Noisy(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return x + torch.randn_like(x)


class Unbuildable(nn.Module):
    def __init__(self, dim):
        super().__init__()
        raise RuntimeError("no such weights")

    def forward(self, x):
        return x
