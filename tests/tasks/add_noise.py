import torch
import torch.nn as nn

ROWS = 41
COLS = 263


class Model(nn.Module):
    """Uses the generator in its forward: the same seed gives the same noise."""

    def forward(self, x):
        return torch.relu(x + 0.1 * torch.randn_like(x))


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
