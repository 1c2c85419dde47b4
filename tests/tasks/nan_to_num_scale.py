import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.nan_to_num(x, nan=0.5, posinf=8.0, neginf=-8.0) * 3.0


def get_inputs():
    return [torch.randn(40, 130)]


def get_init_inputs():
    return []
