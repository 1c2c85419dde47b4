import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        return torch.round(x / self.s.abs().clamp(min=1e-5)).clamp(-128, 127) * self.s.abs().clamp(min=1e-5)


def get_inputs():
    return [torch.randn(60, 130)]


def get_init_inputs():
    return []
