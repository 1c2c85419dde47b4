import torch
import torch.nn as nn

COUNT, KINDS = 50, 9


class Model(nn.Module):
    """One where two keys are equal, nought elsewhere."""

    def forward(self, keys):
        return (keys[:, None] == keys[None, :]).float()


def get_inputs():
    return [torch.randint(0, KINDS, (COUNT,))]


def get_init_inputs():
    return []
