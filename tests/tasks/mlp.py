import torch
import torch.nn as nn

BATCH = 50
IN = 64
HIDDEN = 144
OUT = 33


class Model(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.up = nn.Linear(in_features, hidden)
        self.down = nn.Linear(hidden, out_features)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def get_inputs():
    return [torch.randn(BATCH, IN)]


def get_init_inputs():
    return [IN, HIDDEN, OUT]
