import torch
import torch.nn as nn


class Model(nn.Module):
    """Scores with a slope for each head, which a checkpoint may hold."""

    def __init__(self, heads):
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1).float())

    def forward(self, scores):
        n = scores.shape[-1]
        place = torch.arange(n, device=scores.device)
        return scores - self.slopes.view(-1, 1, 1) * (place[:, None] - place[None, :]).abs()


def get_inputs():
    return [torch.randn(3, 8, 33, 33)]


def get_init_inputs():
    return [8]
