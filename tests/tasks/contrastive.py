import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The symmetric contrastive loss of two batches of embeddings."""

    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        logits = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t() * self.log_scale.exp()
        own = torch.arange(a.shape[0], device=a.device)
        return (F.cross_entropy(logits, own) + F.cross_entropy(logits.t(), own)) / 2


def get_inputs():
    return [torch.randn(48, 32), torch.randn(48, 32)]


def get_init_inputs():
    return []
