import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
IN = 64
OUT = 64
SIDE = 256


class Model(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, padding=1)
        self.norm1 = nn.InstanceNorm2d(out, affine=True)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.norm2 = nn.InstanceNorm2d(out, affine=True)

    def forward(self, x):
        x = F.leaky_relu(self.norm1(self.conv1(x)), 0.01)
        return F.leaky_relu(self.norm2(self.conv2(x)), 0.01)


def get_inputs():
    return [torch.randn(BATCH, IN, SIDE, SIDE)]


def get_init_inputs():
    return [IN, OUT]
