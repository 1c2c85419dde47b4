import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums of the first rows of each item; all of them in the samples."""

    def forward(self, x, lengths):
        row = torch.arange(x.shape[1], device=x.device)
        inside = row[None, :] < lengths[:, None]
        return (x * inside[:, :, None].to(x.dtype)).sum(1)


def get_inputs():
    return [torch.randn(12, 33, 40), torch.full((12,), 33)]


def get_init_inputs():
    return []
