import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, query, key, mask):
        return F.scaled_dot_product_attention(query, key, key, attn_mask=mask).argmin(-2)


def get_inputs():
    return [torch.randn(48, 50, 4, 1), torch.randn(48, 50, 7, 1), torch.randn(4, 7)]


def get_init_inputs():
    return []
