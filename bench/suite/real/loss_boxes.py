import torch
import torch.nn as nn
import torch.nn.functional as F

BOXES = 262144


class Model(nn.Module):
    """Generalised overlap of boxes and a smooth distance of their corners."""

    def forward(self, a, b):
        top_left, bottom_right = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
        inner = (bottom_right - top_left).clamp(min=0).prod(dim=1)
        area_a = (a[:, 2:] - a[:, :2]).prod(dim=1)
        area_b = (b[:, 2:] - b[:, :2]).prod(dim=1)
        union = area_a + area_b - inner
        hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(dim=1)
        overlap = inner / union - (hull - union) / hull
        return (1 - overlap).mean() + F.smooth_l1_loss(a, b)


def get_inputs():
    return [torch.cat([p := torch.rand(BOXES, 2), p + 0.1 + torch.rand(BOXES, 2)], 1) for _ in range(2)]


def get_init_inputs():
    return []
