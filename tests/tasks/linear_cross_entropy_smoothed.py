import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lm_head = nn.Linear(48, 200, bias=False)

    def forward(self, h, y):
        logits = self.lm_head(h)
        logits = 30.0 * torch.tanh(logits / 30.0)
        lse = torch.logsumexp(logits, -1)
        ce = F.cross_entropy(logits, y, ignore_index=-100, label_smoothing=0.1)
        keep = y != -100
        z = (lse * lse * keep).sum() / keep.sum()
        return ce + 1e-2 * z


def get_inputs():
    y = torch.randint(0, 200, (70,))
    y[::7] = -100
    return [torch.randn(70, 48), y]


def get_init_inputs():
    return []
