import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
WIDTH = 64
SIDE = 64


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c1 = nn.Conv2d(3, width, 4, 2, 1)
        self.c2 = nn.Conv2d(width, 2 * width, 4, 2, 1)
        self.n2 = nn.GroupNorm(8, 2 * width)
        self.c3 = nn.Conv2d(2 * width, 1, 4)

    def forward(self, x):
        x = F.leaky_relu(self.c1(x), 0.2)
        x = F.leaky_relu(self.n2(self.c2(x)), 0.2)
        return self.c3(x).mean(dim=(1, 2, 3))


def get_inputs():
    return [torch.randn(BATCH, 3, SIDE, SIDE)]


def get_init_inputs():
    return [WIDTH]
