import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
HEADS = 2
LENGTH = 128
WIDTH = 64


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH).to(torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return []
