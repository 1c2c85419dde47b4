import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, mask):
        return mask.int().argmax(1)


def get_inputs():
    return [torch.rand(64, 96) > 0.5]


def get_init_inputs():
    return []
