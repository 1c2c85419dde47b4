import torch
import torch.nn as nn

BATCH = 32
TOKENS = 256
DIM = 512


class Model(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim // 2)
        self.weight = nn.Parameter(torch.randn(tokens, tokens) * 0.01)
        self.bias = nn.Parameter(torch.ones(tokens, 1))

    def forward(self, x):
        u, v = x.chunk(2, dim=-1)
        return u * (torch.einsum("mn,bnd->bmd", self.weight, self.norm(v)) + self.bias)


def get_inputs():
    return [torch.randn(BATCH, TOKENS, DIM)]


def get_init_inputs():
    return [TOKENS, DIM]
