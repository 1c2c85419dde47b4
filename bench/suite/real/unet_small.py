import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
WIDTH = 32
SIDE = 128


def step(inp, out):
    return nn.Sequential(nn.Conv2d(inp, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class Model(nn.Module):
    """A whole two-level network for segmentation."""

    def __init__(self, width):
        super().__init__()
        self.first = step(1, width)
        self.second = step(width, 2 * width)
        self.bottom = step(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.back2 = step(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.back1 = step(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)
        self.eval()

    def forward(self, x):
        a = self.first(x)
        b = self.second(F.max_pool2d(a, 2))
        y = self.bottom(F.max_pool2d(b, 2))
        y = self.back2(torch.cat([self.up2(y), b], 1))
        y = self.back1(torch.cat([self.up1(y), a], 1))
        return torch.sigmoid(self.out(y))


def get_inputs():
    return [torch.randn(BATCH, 1, SIDE, SIDE)]


def get_init_inputs():
    return [WIDTH]
