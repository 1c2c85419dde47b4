import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
LENGTH = 24
WIDTH = 64
HIDDEN = 96


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter((torch.randn(HIDDEN, WIDTH) / 8.0).to(torch.bfloat16))
        self.up = nn.Parameter((torch.randn(HIDDEN, WIDTH) / 8.0).to(torch.bfloat16))
        self.down = nn.Parameter((torch.randn(WIDTH, HIDDEN) / 10.0).to(torch.bfloat16))

    def forward(self, x):
        return F.linear(F.silu(F.linear(x, self.gate)) * F.linear(x, self.up), self.down)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH).to(torch.bfloat16)]


def get_init_inputs():
    return []
