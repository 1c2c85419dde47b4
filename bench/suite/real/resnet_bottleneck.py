import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
WIDE = 256
NARROW = 64
SIDE = 56


class Model(nn.Module):
    """1x1, 3x3 and 1x1 convolutions with the norms of a trained network."""

    def __init__(self, wide, narrow):
        super().__init__()
        self.reduce = nn.Conv2d(wide, narrow, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(narrow)
        self.conv = nn.Conv2d(narrow, narrow, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(narrow)
        self.expand = nn.Conv2d(narrow, wide, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(wide)
        self.eval()

    def forward(self, x):
        y = F.relu(self.bn1(self.reduce(x)))
        y = F.relu(self.bn2(self.conv(y)))
        return F.relu(self.bn3(self.expand(y)) + x)


def get_inputs():
    return [torch.randn(BATCH, WIDE, SIDE, SIDE)]


def get_init_inputs():
    return [WIDE, NARROW]
