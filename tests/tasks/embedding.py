import torch
import torch.nn as nn

VOCABULARY = 1000
WIDTH = 64
BATCH = 9
LENGTH = 35


class Model(nn.Module):
    """Token embedding, scaled by sqrt(width)."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.scale = width**0.5

    def forward(self, tokens):
        return self.table(tokens) * self.scale


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, LENGTH))]


def get_init_inputs():
    return [VOCABULARY, WIDTH]
