import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(0, 100)


def get_inputs():
    return [torch.randint(0, 100, (16, 64))]


def get_init_inputs():
    return []
