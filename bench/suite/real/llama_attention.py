import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
LENGTH = 512
DIM = 1024
HEADS = 16
KV_HEADS = 4


class Model(nn.Module):
    """Rotary positions and keys shared by groups of heads."""

    def __init__(self, dim, heads, kv_heads, length):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_heads * self.size, bias=False)
        self.v_proj = nn.Linear(dim, kv_heads * self.size, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)
        frequencies = 1.0 / 10000 ** (torch.arange(0, self.size, 2).float() / self.size)
        angles = torch.outer(torch.arange(length).float(), frequencies)
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

    def turn(self, x):
        a, b = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-b, a), dim=-1) * self.sin

    def forward(self, x):
        b, t, d = x.shape
        q = self.turn(self.q_proj(x).view(b, t, self.heads, self.size).transpose(1, 2))
        k = self.turn(self.k_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2))
        v = self.v_proj(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        groups = self.heads // self.kv_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, d))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, DIM)]


def get_init_inputs():
    return [DIM, HEADS, KV_HEADS, LENGTH]
