import torch
import torch.nn as nn

BATCH = 16
LENGTH = 256
VOCABULARY = 30522
DIM = 768


class Model(nn.Module):
    def __init__(self, vocabulary, length, dim):
        super().__init__()
        self.word = nn.Embedding(vocabulary, dim)
        self.position = nn.Embedding(length, dim)
        self.segment = nn.Embedding(2, dim)
        self.norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, ids, segments):
        places = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
        return self.norm(self.word(ids) + self.position(places) + self.segment(segments))


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, LENGTH)), torch.randint(0, 2, (BATCH, LENGTH))]


def get_init_inputs():
    return [VOCABULARY, LENGTH, DIM]
