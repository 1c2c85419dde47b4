"""A task whose host code reads lengths: its integer inputs are pinned."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, lengths, mask):
        parts = [x[i, : lengths[i]].mean(dim=0) for i in range(x.shape[0])]
        kept = x.flatten(0, 1)[mask]
        return {"means": torch.stack(parts), "kept": kept, "count": int(mask.sum())}


def get_inputs():
    return [torch.randn(3, 10, 4), torch.randint(1, 11, (3,)), torch.rand(30) > 0.5]


def get_init_inputs():
    return []
