import torch
import torch.nn as nn
import torch.nn.functional as F

POINTS = 65536
BANDS = 6
WIDTH = 128


class Model(nn.Module):
    """Sines of a point's coordinates, and a colour and a density from them."""

    def __init__(self, bands, width):
        super().__init__()
        self.register_buffer("rates", 2.0 ** torch.arange(bands).float() * 3.14159265)
        self.l1, self.l2 = nn.Linear(3 + 6 * bands, width), nn.Linear(width, width)
        self.out = nn.Linear(width, 4)

    def forward(self, p):
        angles = (p[..., None] * self.rates).flatten(-2)
        h = torch.cat([p, torch.sin(angles), torch.cos(angles)], dim=-1)
        rgb, density = self.out(F.relu(self.l2(F.relu(self.l1(h))))).split([3, 1], dim=-1)
        return torch.sigmoid(rgb), F.relu(density)


def get_inputs():
    return [torch.rand(POINTS, 3)]


def get_init_inputs():
    return [BANDS, WIDTH]
