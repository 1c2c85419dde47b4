import torch
import torch.nn as nn

M = 24
N = 40
K = 1024


class Model(nn.Module):
    def forward(self, a, w):
        return (a.to(torch.int32)[:, :, None] * w.to(torch.int32)[None]).sum(1).to(torch.int32).float()


def get_inputs():
    return [torch.randint(-20, 20, (M, K), dtype=torch.int8), torch.randint(-1, 2, (K, N), dtype=torch.int8)]


def get_init_inputs():
    return []
