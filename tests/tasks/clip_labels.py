import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, scores, labels):
        return torch.nn.functional.cross_entropy(scores, labels, reduction="none")


def get_inputs():
    return [torch.randn(64, 64), torch.arange(64)]


def get_init_inputs():
    return []
