import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(128, 40)

    def forward(self, x):
        return torch.relu(self.l(x))


def get_inputs():
    return [torch.randn(30, 128)]


def get_init_inputs():
    return []
