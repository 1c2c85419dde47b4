import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
LENGTH = 256
VOCABULARY = 8192
DIM = 512


class Model(nn.Module):
    """Token and position vectors, a norm, and logits through the same table."""

    def __init__(self, vocabulary, length, dim):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(length, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        return F.linear(self.norm(x), self.tokens.weight)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, LENGTH))]


def get_init_inputs():
    return [VOCABULARY, LENGTH, DIM]
