import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
CHANNELS = 96
SQUEEZED = 24
SIDE = 28


class Model(nn.Module):
    """A depthwise layer whose channels are weighed by a squeeze-and-excitation branch."""

    def __init__(self, channels, squeezed):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 5, padding=2, groups=channels, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.down = nn.Conv2d(channels, squeezed, 1)
        self.up = nn.Conv2d(squeezed, channels, 1)
        self.eval()

    def forward(self, x):
        y = F.hardswish(self.bn(self.depthwise(x)))
        gate = F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(y, 1)))))
        return y * gate


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, SQUEEZED]
