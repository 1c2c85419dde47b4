import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 6
HEIGHT = 21
WIDTH = 26


class Model(nn.Module):
    """Upsampling with a gain, so that there is arithmetic in it."""

    def forward(self, x):
        return 0.5 * F.interpolate(x, scale_factor=2, mode="nearest")


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
