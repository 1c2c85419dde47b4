import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, lengths):
        return torch.tanh(x[torch.arange(x.shape[0], device=x.device), lengths - 1])


def get_inputs():
    return [torch.randn(8, 64, 32), torch.randint(1, 50, (8,))]


def get_init_inputs():
    return []
