import torch
import torch.nn as nn

BATCH = 8
TOKENS = 256
DIM = 256
EXPERTS = 8
SLOTS = 16


class Model(nn.Module):
    """Slots are mixtures of tokens and tokens mixtures of slots."""

    def __init__(self, dim, experts, slots):
        super().__init__()
        self.phi = nn.Parameter(torch.randn(dim, experts * slots) * dim**-0.5)
        self.weight = nn.Parameter(torch.randn(experts, dim, dim) * dim**-0.5)

    def forward(self, x):
        logits = x @ self.phi
        dispatch, combine = logits.softmax(dim=1), logits.softmax(dim=-1)
        slots = dispatch.transpose(1, 2) @ x
        b, s, d = slots.shape
        slots = slots.view(b, self.weight.shape[0], -1, d)
        said = torch.relu(torch.einsum("besd,edf->besf", slots, self.weight)).reshape(b, s, d)
        return combine @ said


def get_inputs():
    return [torch.randn(BATCH, TOKENS, DIM)]


def get_init_inputs():
    return [DIM, EXPERTS, SLOTS]
