"""Vector quantiser: each row's nearest code, looked up, and the squared distance."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(64, 32))

    def forward(self, x):
        index = torch.cdist(x, self.codes).argmin(dim=1)
        quantised = self.codes[index]
        return quantised, ((x - quantised) ** 2).mean()


def get_inputs():
    return [torch.randn(200, 32)]


def get_init_inputs():
    return []
