import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
RESIDUAL = 64
SKIP = 128
DILATION = 8
LENGTH = 8192


class Model(nn.Module):
    """A gated causal convolution with its two ways out."""

    def __init__(self, residual, skip, dilation):
        super().__init__()
        self.dilation = dilation
        self.filter = nn.Conv1d(residual, residual, 2, dilation=dilation)
        self.gate = nn.Conv1d(residual, residual, 2, dilation=dilation)
        self.out = nn.Conv1d(residual, residual, 1)
        self.skip = nn.Conv1d(residual, skip, 1)

    def forward(self, x):
        padded = F.pad(x, (self.dilation, 0))
        y = torch.tanh(self.filter(padded)) * torch.sigmoid(self.gate(padded))
        return x + self.out(y), self.skip(y)


def get_inputs():
    return [torch.randn(BATCH, RESIDUAL, LENGTH)]


def get_init_inputs():
    return [RESIDUAL, SKIP, DILATION]
