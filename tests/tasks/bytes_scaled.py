import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.float() / 255


def get_inputs():
    return [torch.randint(0, 100, (16, 64), dtype=torch.uint8)]


def get_init_inputs():
    return []
