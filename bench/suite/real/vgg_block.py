import torch
import torch.nn as nn

BATCH = 16
IN = 64
OUT = 128
SIDE = 112


class Model(nn.Module):
    """Two convolutions with relu, then the largest of each 2x2 window."""

    def __init__(self, inp, out):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(inp, out, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(out, out, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2)
        )

    def forward(self, x):
        return self.features(x)


def get_inputs():
    return [torch.randn(BATCH, IN, SIDE, SIDE)]


def get_init_inputs():
    return [IN, OUT]
