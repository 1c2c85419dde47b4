import torch
import torch.nn as nn

BATCH = 8
LENGTH = 128
DIM = 512
HEADS = 8


class Model(nn.Module):
    """Attention that does not look at padding, and the norm after it."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.dense, self.norm = nn.Linear(dim, dim), nn.LayerNorm(dim)

    def forward(self, x, mask):
        b, n, d = x.shape
        shape = (b, n, self.heads, d // self.heads)
        q = self.query(x).view(shape).transpose(1, 2)
        k = self.key(x).view(shape).permute(0, 2, 3, 1)
        v = self.value(x).view(shape).transpose(1, 2)
        scores = torch.matmul(q, k) / (d // self.heads) ** 0.5 + (1.0 - mask[:, None, None, :]) * -10000.0
        y = torch.matmul(scores.softmax(-1), v).transpose(1, 2).reshape(b, n, d)
        return self.norm(self.dense(y) + x)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, DIM), (torch.rand(BATCH, LENGTH) > 0.2).float()]


def get_init_inputs():
    return [DIM, HEADS]
