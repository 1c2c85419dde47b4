import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 7
CHANNELS = 16
LENGTH = 260


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool1d(x, 4, stride=2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return []
