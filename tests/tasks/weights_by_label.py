import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 70
COLS = 96


class Model(nn.Module):
    def forward(self, x, label):
        return (x * torch.where(label == 2, 3.0, torch.where(label == 0, 0.5, 1.0))).sum(-1)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, 4, (ROWS, COLS)).float()]


def get_init_inputs():
    return []
