import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.a = nn.Conv2d(channels, out_channels, 1, bias=False)
        self.b = nn.Conv2d(channels, out_channels, 1, bias=False)
        nn.init.uniform_(self.a.weight)
        nn.init.uniform_(self.b.weight)

    def forward(self, x, y):
        return self.a(x) - self.b(y)


def get_inputs():
    return [torch.rand(2, 256, 16, 16), torch.rand(2, 256, 16, 16)]


def get_init_inputs():
    return [256, 32]
