import torch
import torch.nn as nn

LENGTH, WIDTH = 60, 48


class Model(nn.Module):
    """Adds to each row the sines of its integer position, the same in every call."""

    def forward(self, x, position):
        rate = torch.exp(torch.arange(WIDTH, device=x.device) * (-0.2))
        return x + torch.sin(position[:, None].to(x.dtype) * rate)


def get_inputs():
    return [torch.randn(LENGTH, WIDTH), torch.arange(LENGTH)]


def get_init_inputs():
    return []
