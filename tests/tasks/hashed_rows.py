import torch
import torch.nn as nn

ROWS = 97
COLS = 32


class Model(nn.Module):
    """Rows of a table by the remainder of an identifier."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(ROWS, COLS))

    def forward(self, ids):
        return self.table[ids % ROWS]


def get_inputs():
    return [torch.randint(0, 90, (120,))]


def get_init_inputs():
    return []
