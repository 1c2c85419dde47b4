import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 15
CLASSES = 211


class Model(nn.Module):
    def forward(self, a, b):
        return F.kl_div(torch.log_softmax(a, -1), torch.softmax(b, -1), reduction="none")


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
