import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """Attention with small scores whose keys are products of three inputs. Whether large ones overflow
    depends on when the scale is applied."""

    def forward(self, query, key, gate, level, value):
        return F.scaled_dot_product_attention(query, key * gate * level, value, is_causal=True, scale=0.1)


def get_inputs():
    query, key, gate = torch.randn(4, 7, 40), torch.randn(4, 7, 40), torch.rand(4, 7, 40)
    return [query, key, gate, torch.randn(40), torch.randn(4, 7, 24)]


def get_init_inputs():
    return []
