import torch
import torch.nn as nn

M = 64
N = 128
K = 256


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [(torch.randn(M, K) * torch.logspace(-3, 1, M)[:, None]).to(torch.bfloat16), torch.randn(K, N).to(torch.bfloat16)]


def get_init_inputs():
    return []
