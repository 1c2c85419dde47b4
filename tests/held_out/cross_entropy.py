import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Returns a tensor of shape ()."""
        x = x * y
        x = F.cross_entropy(x, target)
        return x

def get_inputs():
    x = torch.randn(5, 2)
    y = torch.randn(5, 1)
    target = torch.randint(0, 2, (5,))
    return [x, y, target]

def get_init_inputs():
    return []
