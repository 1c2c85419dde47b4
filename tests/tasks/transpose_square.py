import torch
import torch.nn as nn

BATCH = 6
SIZE = 32


class Model(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2).contiguous() * 2.0


def get_inputs():
    return [torch.randn(BATCH, SIZE, SIZE)]


def get_init_inputs():
    return []
