import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, logits, u, temperature):
        l = logits / temperature
        kth = l.topk(5, -1).values[:, -1:]
        l = l.masked_fill(l < kth, float("-inf"))
        p = l.softmax(-1)
        c = p.cumsum(-1)
        return (c < u).sum(-1).clamp(max=logits.shape[-1] - 1), p


def get_inputs():
    return [torch.randn(20, 100), torch.rand(20, 1), torch.tensor(0.8)]


def get_init_inputs():
    return []
