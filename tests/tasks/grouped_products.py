import torch
import torch.nn as nn

ROWS, INNER, COLUMNS = (40, 17, 65), (48, 33, 20), (36, 50, 16)


class Model(nn.Module):
    """Several products of matrices of different sizes."""

    def forward(self, left, right):
        return [a @ b for a, b in zip(left, right)]


def get_inputs():
    left = [torch.randn(m, k) for m, k in zip(ROWS, INNER)]
    right = [torch.randn(k, n) for k, n in zip(INNER, COLUMNS)]
    return [left, right]


def get_init_inputs():
    return []
