import torch
import torch.nn as nn


class Model(nn.Module):
    """A step of Adam on a parameter, whose moments are buffers."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3000))
        self.register_buffer("first", torch.randn(3000) * 0.1)
        self.register_buffer("second", torch.rand(3000))

    def forward(self, grad):
        self.first.mul_(0.9).add_(grad, alpha=0.1)
        self.second.mul_(0.999).addcmul_(grad, grad, value=0.001)
        step = self.first / (self.second.sqrt() + 1e-8)
        return self.weight * 0.9999 - 0.01 * step


def get_inputs():
    return [torch.randn(3000)]


def get_init_inputs():
    return []
