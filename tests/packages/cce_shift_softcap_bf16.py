"""cut-cross-entropy: shifted targets and capped logits (bf16).

reference: cce_shift_softcap_bf16.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from cut_cross_entropy import linear_cross_entropy

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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(CLASSES, WIDTH) / WIDTH**0.5).to(torch.bfloat16))

    def forward(self, x, target):
        return linear_cross_entropy(x, self.weight.detach(), target, softcap=CAP, shift=True, impl="cce")


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH).to(torch.bfloat16), torch.randint(0, CLASSES, (BATCH, LENGTH))]


def get_init_inputs():
    return []
