import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal attention of packed sequences, whose offsets are given."""

    def forward(self, q, k, v, offsets):
        row = torch.arange(q.shape[0], device=q.device)
        segment = torch.searchsorted(offsets[1:], row, right=True)
        inside = (segment[:, None] == segment[None, :]) & (row[None, :] <= row[:, None])
        scores = (q @ k.t() * q.shape[1] ** -0.5).masked_fill(~inside, float("-inf"))
        return scores.softmax(-1) @ v


def get_inputs():
    offsets = torch.tensor([0, 10, 33, 40, 64])
    return [torch.randn(64, 32), torch.randn(64, 32), torch.randn(64, 32), offsets]


def get_init_inputs():
    return []
