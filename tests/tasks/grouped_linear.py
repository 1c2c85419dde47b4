import torch
import torch.nn as nn

EXPERTS = 3
TOKENS = 60
WIDTH = 64
OUT = 48


class Model(nn.Module):
    """Tokens sorted by expert: rows [offsets[e], offsets[e + 1]) are multiplied by weight[e]."""

    def __init__(self, experts, width, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, width, out_features) / width**0.5)

    def forward(self, x, counts):
        ends = torch.cumsum(counts, 0).tolist()
        starts = [0] + ends[:-1]
        parts = [x[s:e] @ self.weight[i] for i, (s, e) in enumerate(zip(starts, ends))]
        return torch.cat(parts)


def get_inputs():
    cut = torch.randint(0, TOKENS // 2, (EXPERTS - 1,))
    counts = torch.cat([cut // (EXPERTS - 1), (TOKENS - (cut // (EXPERTS - 1)).sum())[None]])
    return [torch.randn(TOKENS, WIDTH), counts]


def get_init_inputs():
    return [EXPERTS, WIDTH, OUT]
