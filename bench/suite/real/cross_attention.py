import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
QUERIES = 256
KEYS = 77
DIM = 320
CONTEXT = 768
HEADS = 8


class Model(nn.Module):
    """Image tokens look at a text."""

    def __init__(self, dim, context, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(context, dim, bias=False)
        self.to_v = nn.Linear(context, dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, text):
        def heads(t):
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = F.scaled_dot_product_attention(heads(self.to_q(x)), heads(self.to_k(text)), heads(self.to_v(text)))
        return x + self.to_out(y.transpose(1, 2).flatten(2))


def get_inputs():
    return [torch.randn(BATCH, QUERIES, DIM), torch.randn(BATCH, KEYS, CONTEXT)]


def get_init_inputs():
    return [DIM, CONTEXT, HEADS]
