import torch
import torch.nn as nn

M = 64
N = 128
K = 512


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(M, K).to(torch.bfloat16), torch.rand(K, N).to(torch.bfloat16)]


def get_init_inputs():
    return []
