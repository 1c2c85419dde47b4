import torch
import torch.nn as nn


class Model(nn.Module):
    """A sparse matrix in compressed rows times a dense one."""

    def forward(self, crow, col, values, dense):
        counts = crow[1:] - crow[:-1]
        row = torch.repeat_interleave(torch.arange(counts.shape[0], device=col.device), counts, output_size=col.shape[0])
        out = dense.new_zeros(counts.shape[0], dense.shape[1])
        return out.index_add(0, row, values[:, None] * dense[col])


def get_inputs():
    crow = torch.cat([torch.zeros(1, dtype=torch.long), torch.randint(1, 7, (30,)).cumsum(0)])
    crow = torch.clamp(crow, max=120)
    crow[-1] = 120
    return [crow, torch.randint(0, 50, (120,)), torch.randn(120), torch.randn(50, 24)]


def get_init_inputs():
    return []
