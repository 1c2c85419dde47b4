import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        values, places = torch.topk(x, 4, sorted=False)
        return torch.softmax(values, -1), places


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
