import torch
import torch.nn as nn


class Model(nn.Module):
    """A softmax of scores under the triangular mask that the module registers."""

    def __init__(self, longest):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, scores):
        n = scores.shape[-1]
        scores = scores.masked_fill(self.bias[:, :, :n, :n] == 0, float("-inf"))
        return torch.softmax(scores, dim=-1)


def get_inputs():
    return [torch.randn(2, 3, 40, 40)]


def get_init_inputs():
    return [64]
