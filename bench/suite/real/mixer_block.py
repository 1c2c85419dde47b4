import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
TOKENS = 196
DIM = 512
TOKEN_HIDDEN = 256
HIDDEN = 2048


class Model(nn.Module):
    """Mixes places, then channels."""

    def __init__(self, tokens, dim, token_hidden, hidden):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.t1, self.t2 = nn.Linear(tokens, token_hidden), nn.Linear(token_hidden, tokens)
        self.c1, self.c2 = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        y = self.n1(x).transpose(1, 2)
        x = x + self.t2(F.gelu(self.t1(y))).transpose(1, 2)
        return x + self.c2(F.gelu(self.c1(self.n2(x))))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, DIM)]


def get_init_inputs():
    return [TOKENS, DIM, TOKEN_HIDDEN, HIDDEN]
