import torch
import torch.nn as nn

BATCH = 32
CHANNELS = 128
REDUCED = 8
SIDE = 28


class Model(nn.Module):
    """Which channels matter, then which places do."""

    def __init__(self, channels, reduced):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(channels, reduced), nn.ReLU(), nn.Linear(reduced, channels))
        self.spatial = nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x):
        weights = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(x.amax((2, 3))))
        x = x * weights[:, :, None, None]
        places = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return x * torch.sigmoid(self.spatial(places))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, REDUCED]
