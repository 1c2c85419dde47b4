import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 32
COLS = 16


class Model(nn.Module):
    def forward(self, x, target):
        return F.hinge_embedding_loss(x, target)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, 2, (ROWS, COLS)) * 2.0 - 1.0]


def get_init_inputs():
    return []
