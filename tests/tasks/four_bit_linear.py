import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer whose weights are eight numbers of four bits in each integer, with a scale and a zero a group."""

    def forward(self, x, packed, scales, zeros):
        shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)
        codes = ((packed[:, :, None] >> shifts) & 15).flatten(1)
        groups = scales.shape[1]
        weight = (codes.view(codes.shape[0], groups, -1) - zeros[:, :, None]) * scales[:, :, None]
        return x @ weight.flatten(1).t()


def get_inputs():
    packed = torch.randint(-(2**31), 2**31 - 1, (48, 16), dtype=torch.int32)
    return [torch.randn(32, 128), packed, torch.rand(48, 4) * 0.1 + 0.01, torch.randint(0, 16, (48, 4)).float()]


def get_init_inputs():
    return []
