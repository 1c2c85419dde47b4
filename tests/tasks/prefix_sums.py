import torch
import torch.nn as nn

ROWS, COLS = 40, 200


class Model(nn.Module):
    """Prefix sums of integers."""

    def forward(self, keys):
        return torch.cumsum(keys, -1)


def get_inputs():
    return [torch.randint(-1000, 1000, (ROWS, COLS))]


def get_init_inputs():
    return []
