import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY = 90
WIDTH = 40
BATCH = 3
LENGTH = 11


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, WIDTH))

    def forward(self, tokens):
        return F.embedding(tokens, self.table)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, LENGTH))]


def get_init_inputs():
    return []
