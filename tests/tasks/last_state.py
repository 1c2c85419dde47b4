import torch
import torch.nn as nn


class Model(nn.Module):
    """The last state of a gated recurrence over each row."""

    def forward(self, gate, x):
        state = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.sigmoid(gate[:, t]) * state + x[:, t]
        return state


def get_inputs():
    return [torch.randn(48, 64), torch.randn(48, 64)]


def get_init_inputs():
    return []
