"""liger-kernel: embedding.

reference: liger_embedding.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, WIDTH))

    def forward(self, tokens):
        return LigerEmbeddingFunction.apply(self.table, tokens)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, LENGTH))]


def get_init_inputs():
    return []
