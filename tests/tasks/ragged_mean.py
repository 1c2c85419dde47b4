import torch
import torch.nn as nn

SEQUENCES = 6
LONGEST = 50
WIDTH = 40


class Model(nn.Module):
    """The mean of each padded sequence's first `length` rows."""

    def forward(self, x, lengths):
        return torch.stack([x[i, : int(lengths[i])].mean(dim=0) for i in range(x.shape[0])])


def get_inputs():
    return [torch.randn(SEQUENCES, LONGEST, WIDTH), torch.randint(1, LONGEST + 1, (SEQUENCES,))]


def get_init_inputs():
    return []
