import torch
import torch.nn as nn

BATCH = 64
IN_CAPS = 256
OUT_CAPS = 10
IN_DIM = 8
OUT_DIM = 16


class Model(nn.Module):
    """Two rounds of routing by agreement."""

    def __init__(self, in_caps, out_caps, in_dim, out_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_caps, out_caps, in_dim, out_dim) * 0.1)

    @staticmethod
    def squash(s):
        squared = s.pow(2).sum(-1, keepdim=True)
        return squared / (1 + squared) * s / torch.sqrt(squared + 1e-8)

    def forward(self, x):
        votes = torch.einsum("bid,ijde->bije", x, self.weight)
        v = self.squash(votes.mean(dim=1))
        agreement = (votes * v.unsqueeze(1)).sum(-1)
        return self.squash((agreement.softmax(dim=2).unsqueeze(-1) * votes).sum(dim=1))


def get_inputs():
    return [torch.randn(BATCH, IN_CAPS, IN_DIM)]


def get_init_inputs():
    return [IN_CAPS, OUT_CAPS, IN_DIM, OUT_DIM]
