import torch
from torch import nn


class Waves(nn.Module):
    def __init__(self, dim):
        super().__init__()

    def forward(self, x):
        return torch.cat([x.sin(), x.cos()], dim=-1).cumsum(-1)
