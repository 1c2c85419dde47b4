import torch
import torch.nn as nn

BATCH = 8
CHANNELS = 128
SIDE = 64


class Model(nn.Module):
    """Gives one image the statistics of another."""

    def forward(self, content, style):
        mean_c, std_c = content.mean((2, 3), keepdim=True), content.std((2, 3), keepdim=True) + 1e-5
        mean_s, std_s = style.mean((2, 3), keepdim=True), style.std((2, 3), keepdim=True)
        return (content - mean_c) / std_c * std_s + mean_s


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
