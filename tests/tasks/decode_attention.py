import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """One query a sequence against a cache of keys and values; eight heads share two of keys."""

    def forward(self, q, k, v):
        k, v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(2, 8, 1, 32), torch.randn(2, 2, 200, 32), torch.randn(2, 2, 200, 32)]


def get_init_inputs():
    return []
