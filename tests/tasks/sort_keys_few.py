import torch
import torch.nn as nn

COUNT = 40


class Model(nn.Module):
    """A few integer keys in ascending order."""

    def forward(self, keys):
        return torch.sort(keys).values


def get_inputs():
    return [torch.randint(-100000, 100000, (COUNT,), dtype=torch.int32)]


def get_init_inputs():
    return []
