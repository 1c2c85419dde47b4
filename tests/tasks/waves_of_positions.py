import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, positions):
        f = 1e4 ** (-torch.arange(0, 32, device=x.device) / 32)
        return x + torch.sin(positions.float()[..., None] * f)


def get_inputs():
    return [torch.randn(4, 64, 32), torch.arange(64).expand(4, 64).contiguous()]


def get_init_inputs():
    return []
