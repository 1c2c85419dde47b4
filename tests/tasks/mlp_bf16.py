import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 64
IN = 128
HIDDEN = 256


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(IN, HIDDEN, bias=False).to(torch.bfloat16)
        self.down = nn.Linear(HIDDEN, IN, bias=False).to(torch.bfloat16)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


def get_inputs():
    return [torch.randn(ROWS, IN).to(torch.bfloat16)]


def get_init_inputs():
    return []
