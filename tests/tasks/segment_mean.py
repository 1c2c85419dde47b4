import torch
import torch.nn as nn

ROWS, COLS, SEGMENTS = 900, 48, 37


class Model(nn.Module):
    """The mean of the rows of each segment; zero where it has none."""

    def forward(self, x, segment):
        total = torch.zeros(SEGMENTS, x.shape[1], dtype=x.dtype, device=x.device).index_add_(0, segment, x)
        count = torch.zeros(SEGMENTS, dtype=x.dtype, device=x.device).index_add_(0, segment, torch.ones_like(x[:, 0]))
        return total / count.clamp(min=1)[:, None]


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, SEGMENTS, (ROWS,))]


def get_init_inputs():
    return []
