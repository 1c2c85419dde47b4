import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of packed sequences, given by where each begins and the last ends."""

    def forward(self, x, offsets):
        row = torch.arange(x.shape[0], device=x.device)
        segment = torch.searchsorted(offsets[1:], row, right=True)
        out = torch.zeros(offsets.shape[0] - 1, x.shape[1], device=x.device, dtype=x.dtype)
        return out.index_add_(0, segment, x)


def get_inputs():
    return [torch.randn(320, 40), torch.arange(0, 321, 32)]


def get_init_inputs():
    return []
