import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 17
CLASSES = 301


class Model(nn.Module):
    def forward(self, student, teacher, target):
        distance = 0.5 * (torch.softmax(student, -1) - torch.softmax(teacher, -1)).abs().sum(-1)
        return F.cross_entropy(student, target, reduction="none"), distance


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES), torch.randint(0, CLASSES, (ROWS,))]


def get_init_inputs():
    return []
