import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
CHANNELS = 128
SIDE = 32
DIM = 256


class Model(nn.Module):
    """A diffusion network's block: the step's sines scale and shift a normalised image."""

    def __init__(self, channels, dim):
        super().__init__()
        self.dim = dim
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 2 * channels))
        self.norm = nn.GroupNorm(32, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, steps):
        half = self.dim // 2
        rates = torch.exp(torch.arange(half, device=x.device) * (-9.21 / half))
        angles = steps[:, None] * rates[None]
        scale, shift = self.mlp(torch.cat([angles.sin(), angles.cos()], -1))[:, :, None, None].chunk(2, dim=1)
        return x + self.conv(F.silu(self.norm(x) * (1 + scale) + shift))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.rand(BATCH) * 1000]


def get_init_inputs():
    return [CHANNELS, DIM]
