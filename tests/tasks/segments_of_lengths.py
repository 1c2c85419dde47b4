import torch
import torch.nn as nn


class Model(nn.Module):
    """The segment of each row, from the segments' lengths."""

    def forward(self, lengths):
        ends = lengths.cumsum(0)
        return torch.searchsorted(ends, torch.arange(512, device=lengths.device), right=True)


def get_inputs():
    return [torch.tensor([16] * 32)]


def get_init_inputs():
    return []
