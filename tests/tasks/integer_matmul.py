import torch
import torch.nn as nn

M, N, K = 48, 56, 40


class Model(nn.Module):
    """The product of two int32 matrices."""

    def forward(self, a, b):
        return (a[:, :, None] * b[None]).sum(dim=1, dtype=torch.int32)


def get_inputs():
    return [torch.randint(-100, 100, (M, K), dtype=torch.int32), torch.randint(-100, 100, (K, N), dtype=torch.int32)]


def get_init_inputs():
    return []
