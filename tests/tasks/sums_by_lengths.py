import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of packed sequences, given by their lengths."""

    def forward(self, x, lengths):
        row = torch.arange(x.shape[0], device=x.device)
        segment = torch.searchsorted(lengths.cumsum(0), row, right=True)
        out = torch.zeros(lengths.shape[0], x.shape[1], device=x.device, dtype=x.dtype)
        return out.index_add_(0, segment, x)


def get_inputs():
    return [torch.randn(320, 24), torch.tensor([40, 31, 55, 22, 60, 12, 52, 48])]


def get_init_inputs():
    return []
