import torch
import torch.nn as nn

BATCH = 3
CHANNELS = 12
GROUPS = 4
LENGTH = 50


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, CHANNELS)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return []
