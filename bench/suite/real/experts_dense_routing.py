import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 1024
DIM = 256
HIDDEN = 512
EXPERTS = 8


class Model(nn.Module):
    """Every expert sees every token; the router's softmax weighs what they say."""

    def __init__(self, dim, hidden, experts):
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)
        self.w1 = nn.Parameter(torch.randn(experts, dim, hidden) * dim**-0.5)
        self.w2 = nn.Parameter(torch.randn(experts, hidden, dim) * hidden**-0.5)

    def forward(self, x):
        weights = torch.softmax(self.router(x), dim=-1)
        hidden = F.gelu(torch.einsum("td,edh->eth", x, self.w1))
        said = torch.einsum("eth,ehd->etd", hidden, self.w2)
        return torch.einsum("te,etd->td", weights, said)


def get_inputs():
    return [torch.randn(TOKENS, DIM)]


def get_init_inputs():
    return [DIM, HIDDEN, EXPERTS]
