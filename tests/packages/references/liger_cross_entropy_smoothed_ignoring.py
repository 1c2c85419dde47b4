import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 33
CLASSES = 517


class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, ignore_index=3, label_smoothing=0.1, reduction="sum")


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randint(0, 12, (ROWS,))]


def get_init_inputs():
    return []
