"""Two flags an element; on the task's own inputs all of the first are true, none of the second is."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x > -100.0, x > 100.0


def get_inputs():
    return [torch.randn(37, 24)]


def get_init_inputs():
    return []
