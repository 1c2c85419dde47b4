import torch
import torch.nn as nn

BATCH = 16
CLASSES = 4
SIDE = 256


class Model(nn.Module):
    def forward(self, logits, masks):
        p = logits.softmax(dim=1)
        overlap = (p * masks).sum(dim=(2, 3))
        total = p.sum(dim=(2, 3)) + masks.sum(dim=(2, 3))
        return 1 - ((2 * overlap + 1) / (total + 1)).mean()


def get_inputs():
    return [torch.randn(BATCH, CLASSES, SIDE, SIDE), torch.rand(BATCH, CLASSES, SIDE, SIDE)]


def get_init_inputs():
    return []
