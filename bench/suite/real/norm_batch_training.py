import torch
import torch.nn as nn

BATCH = 64
CHANNELS = 64
SIDE = 56


class Model(nn.Module):
    """A batch norm that is being trained, with its relu."""

    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.bn(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
