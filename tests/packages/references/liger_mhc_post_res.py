import torch
import torch.nn as nn

TOKENS = 37
STREAMS = 4
WIDTH = 72


class Model(nn.Module):
    def forward(self, x, f, h_post, h_res):
        return h_post[..., None] * f[:, None] + h_res @ x


def get_inputs():
    return [torch.randn(TOKENS, STREAMS, WIDTH), torch.randn(TOKENS, WIDTH), torch.rand(TOKENS, STREAMS), torch.rand(TOKENS, STREAMS, STREAMS)]


def get_init_inputs():
    return []
