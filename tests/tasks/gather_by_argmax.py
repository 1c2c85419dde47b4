import torch
import torch.nn as nn

ROWS = 32
COLS = 64


class Model(nn.Module):
    def forward(self, scores, values):
        best = scores.argmax(-1, keepdim=True)
        return values.gather(-1, best)


def get_inputs():
    return [torch.randint(-3, 4, (ROWS, COLS)).float(), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
