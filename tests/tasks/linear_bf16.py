import torch
import torch.nn as nn

ROWS = 64
IN = 256
OUT = 128


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(IN, OUT).to(torch.bfloat16)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, IN).to(torch.bfloat16)]


def get_init_inputs():
    return []
