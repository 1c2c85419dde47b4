import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 3
CHANNELS = 10
HEIGHT = 31
WIDTH = 34


class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 3, stride=2, padding=1)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
