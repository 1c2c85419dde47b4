import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, p, y):
        return F.binary_cross_entropy(p, y, reduction="none")


def get_inputs():
    return [torch.rand(96, 130), torch.rand(96, 130)]


def get_init_inputs():
    return []
