import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
FINE = 256
COARSE = 512
OUT = 256
SIDE = 32


class Model(nn.Module):
    def __init__(self, fine, coarse, out):
        super().__init__()
        self.lateral = nn.Conv2d(fine, out, 1)
        self.top = nn.Conv2d(coarse, out, 1)
        self.smooth = nn.Conv2d(out, out, 3, padding=1)

    def forward(self, fine, coarse):
        up = F.interpolate(self.top(coarse), scale_factor=2.0, mode="nearest")
        return self.smooth(self.lateral(fine) + up)


def get_inputs():
    return [torch.randn(BATCH, FINE, 2 * SIDE, 2 * SIDE), torch.randn(BATCH, COARSE, SIDE, SIDE)]


def get_init_inputs():
    return [FINE, COARSE, OUT]
