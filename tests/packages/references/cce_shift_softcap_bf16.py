import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
LENGTH = 20
WIDTH = 64
CLASSES = 300
CAP = 20.0


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(CLASSES, WIDTH) / WIDTH**0.5).to(torch.bfloat16))

    def forward(self, x, target):
        logits = x[:, :-1].float() @ self.weight.float().t()
        logits = CAP * torch.tanh(logits / CAP)
        return F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH).to(torch.bfloat16), torch.randint(0, CLASSES, (BATCH, LENGTH))]


def get_init_inputs():
    return []
