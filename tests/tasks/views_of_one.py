"""Inputs that share a storage, nested, and among numbers of all kinds."""
import torch
import torch.nn as nn

ROWS = 61
COLS = 96


class Model(nn.Module):
    def forward(self, pair, options):
        left, right = pair
        return (left - right) * options["scale"] + options["more"][0].t()[: left.shape[0]]


def get_inputs():
    base = torch.randn(ROWS, COLS)
    return [(base[:, :64], base[:, 32:]), {"scale": 0.5, "more": [torch.randn(64, ROWS), None, float("inf"), True, "text"]}]


def get_init_inputs():
    return []
