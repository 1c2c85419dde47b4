import torch
import torch.nn as nn

BATCH = 3
STEPS = 20
HEADS = 4
WIDTH = 12


class Model(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.table = nn.Parameter(torch.randn(width, heads))

    def forward(self, x):
        heads = x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)
        return heads, x[:, ::2].unsqueeze(1), self.table.t()


def get_inputs():
    return [torch.randn(BATCH, STEPS, HEADS * WIDTH)]


def get_init_inputs():
    return [HEADS, WIDTH]
