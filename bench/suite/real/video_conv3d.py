import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
IN = 32
OUT = 64
FRAMES = 8
SIDE = 28


class Model(nn.Module):
    """A convolution over space and time with norm, relu and pooling."""

    def __init__(self, inp, out):
        super().__init__()
        self.conv = nn.Conv3d(inp, out, 3, padding=1)
        self.bn = nn.BatchNorm3d(out)
        self.eval()

    def forward(self, x):
        return F.max_pool3d(F.relu(self.bn(self.conv(x))), (1, 2, 2))


def get_inputs():
    return [torch.randn(BATCH, IN, FRAMES, SIDE, SIDE)]


def get_init_inputs():
    return [IN, OUT]
