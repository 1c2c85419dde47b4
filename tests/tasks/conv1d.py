import torch
import torch.nn as nn

BATCH = 3
IN = 12
OUT = 20
LENGTH = 151


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, 5, stride=2, padding=2)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(BATCH, IN, LENGTH)]


def get_init_inputs():
    return [IN, OUT]
