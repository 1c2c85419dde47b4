import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, x, y):
        x, y = F.normalize(x, dim=-1), F.normalize(y, dim=-1)
        return self.logit_scale.exp().clamp(max=100.0) * (x @ y.T)


def get_inputs():
    return [torch.randn(32, 64), torch.randn(48, 64)]


def get_init_inputs():
    return []
