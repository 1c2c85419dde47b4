import torch
import torch.nn as nn

ROWS = 13
WIDTH = 100


class Model(nn.Module):
    def forward(self, x):
        z = torch.sort(x, dim=-1, descending=True).values
        sums = torch.cumsum(z, -1)
        k = torch.arange(1, WIDTH + 1, device=x.device, dtype=x.dtype)
        size = (1 + k * z > sums).sum(-1, keepdim=True)
        threshold = (sums.gather(-1, size - 1) - 1) / size
        return torch.relu(x - threshold)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
