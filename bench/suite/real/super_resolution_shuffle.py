import torch
import torch.nn as nn

BATCH = 8
SIDE = 128
SCALE = 3


class Model(nn.Module):
    """Makes a larger image out of channels."""

    def __init__(self, scale):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, scale**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(scale)

    def forward(self, x):
        return self.shuffle(self.conv3(torch.tanh(self.conv2(torch.tanh(self.conv1(x))))))


def get_inputs():
    return [torch.rand(BATCH, 1, SIDE, SIDE)]


def get_init_inputs():
    return [SCALE]
