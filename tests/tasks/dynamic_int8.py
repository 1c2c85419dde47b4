import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer of 8-bit weights; each row of the input is rounded to 8 bits by its largest number."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (40, 96), dtype=torch.int8))
        self.scale = nn.Parameter(torch.rand(40) * 0.01 + 0.001)

    def forward(self, x):
        step = (x.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-8)
        codes = torch.round(x / step).clamp(-127, 127)
        return codes @ self.weight.float().t() * step * self.scale


def get_inputs():
    return [torch.randn(32, 96)]


def get_init_inputs():
    return []
