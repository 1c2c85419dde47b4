import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
LENGTH = 1024
DIM = 768
HEADS = 12


class Model(nn.Module):
    """Causal attention in bfloat16."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False, dtype=torch.bfloat16)
        self.out = nn.Linear(dim, dim, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, DIM, dtype=torch.bfloat16)]


def get_init_inputs():
    return [DIM, HEADS]
