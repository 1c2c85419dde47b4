import torch
import torch.nn as nn

WINDOWS = 256
WINDOW = 7
DIM = 96
HEADS = 3


class Model(nn.Module):
    """Attention inside windows, with a bias for every pair of places."""

    def __init__(self, window, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.bias = nn.Parameter(torch.randn(heads, window**2, window**2) * 0.02)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = (q * self.scale) @ k.transpose(-2, -1) + self.bias
        return self.proj((torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, n, c))


def get_inputs():
    return [torch.randn(WINDOWS, WINDOW * WINDOW, DIM)]


def get_init_inputs():
    return [WINDOW, DIM, HEADS]
