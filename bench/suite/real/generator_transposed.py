import torch
import torch.nn as nn

BATCH = 64
LATENT = 100
WIDTH = 64


class Model(nn.Module):
    """From a vector to a 32x32 image by transposed convolutions."""

    def __init__(self, latent, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(latent, 4 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(True),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh(),
        )
        self.eval()

    def forward(self, z):
        return self.net(z[:, :, None, None])


def get_inputs():
    return [torch.randn(BATCH, LATENT)]


def get_init_inputs():
    return [LATENT, WIDTH]
