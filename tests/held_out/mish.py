import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    """Tanh and mish."""

    def __init__(self):
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of shape ()."""
        x = x.tanh()
        x = F.mish(x)
        return x

def get_inputs():
    return [torch.randn(())]

def get_init_inputs():
    return []
