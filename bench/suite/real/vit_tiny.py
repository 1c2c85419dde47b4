import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
SIDE = 64
PATCH = 8
DIM = 128
HEADS = 4
DEPTH = 2
CLASSES = 100


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        y = self.ln1(x)
        y = F.scaled_dot_product_attention(self.split(self.q(y)), self.split(self.k(y)), self.split(self.v(y)))
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln2(x))


class Model(nn.Module):
    def __init__(self, side, patch, dim, heads, depth, classes):
        super().__init__()
        self.embed = nn.Conv2d(3, dim, patch, patch)
        self.pos = nn.Parameter(torch.randn(1, (side // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def get_inputs():
    return [torch.randn(BATCH, 3, SIDE, SIDE)]


def get_init_inputs():
    return [SIDE, PATCH, DIM, HEADS, DEPTH, CLASSES]
