import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        s = x.abs().amax(-1, keepdim=True).clamp(min=1e-10) / 127.0
        return torch.round(x / s).clamp(-127, 127).to(torch.int8), s


def get_inputs():
    return [torch.randn(40, 200)]


def get_init_inputs():
    return []
