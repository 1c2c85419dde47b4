import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, flag):
        return torch.where(flag, torch.relu(x), -x)


def get_inputs():
    return [torch.randn(30, 100), torch.tensor(True)]


def get_init_inputs():
    return []
