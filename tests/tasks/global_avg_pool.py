import torch
import torch.nn as nn

BATCH = 9
CHANNELS = 37
HEIGHT = 16
WIDTH = 19


class Model(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
