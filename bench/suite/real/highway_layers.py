import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
DIM = 512


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.h1, self.t1 = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.h2, self.t2 = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x):
        t = torch.sigmoid(self.t1(x))
        x = t * F.relu(self.h1(x)) + (1 - t) * x
        t = torch.sigmoid(self.t2(x))
        return t * F.relu(self.h2(x)) + (1 - t) * x


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
