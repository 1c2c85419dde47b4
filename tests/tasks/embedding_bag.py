import torch
import torch.nn as nn

VOCABULARY = 500
WIDTH = 48
BAGS = 33
LENGTH = 12


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.EmbeddingBag(vocabulary, width, mode="sum")

    def forward(self, tokens):
        return self.table(tokens)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BAGS, LENGTH))]


def get_init_inputs():
    return [VOCABULARY, WIDTH]
