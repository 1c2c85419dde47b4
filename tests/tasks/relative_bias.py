import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(49, 4))
        c = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing='ij')).flatten(1)
        d = (c[:, :, None] - c[:, None, :]).permute(1, 2, 0) + 3
        self.register_buffer('index', d[..., 0] * 7 + d[..., 1])

    def forward(self, x):
        return x + self.table[self.index.view(-1)].view(16, 16, 4).permute(2, 0, 1)


def get_inputs():
    return [torch.randn(2, 4, 16, 16)]


def get_init_inputs():
    return []
