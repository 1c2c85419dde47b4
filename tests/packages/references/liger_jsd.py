import math

import torch
import torch.nn as nn

ROWS = 15
CLASSES = 211
BETA = 0.3


class Model(nn.Module):
    def forward(self, a, b):
        x, y = torch.log_softmax(a, -1), torch.log_softmax(b, -1)
        m = torch.logaddexp(y + math.log(BETA), x + math.log(1 - BETA))
        return (BETA * y.exp() * (y - m) + (1 - BETA) * x.exp() * (x - m)).sum() / ROWS


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
