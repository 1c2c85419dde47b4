import torch
import torch.nn as nn

TOKENS = 14
STREAMS = 4
WIDTH = 32
STEPS = 3
M = STREAMS * STREAMS + 2 * STREAMS


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Parameter((torch.randn(STREAMS * WIDTH, M) / 11.0).to(torch.bfloat16))
        self.b = nn.Parameter(torch.zeros(M))
        self.alpha = nn.Parameter(torch.full((3,), 0.7))

    def forward(self, x):
        flat = x.float().flatten(1)
        mix = flat @ self.phi.float() * torch.rsqrt(flat.pow(2).mean(-1, keepdim=True) + 1e-6)
        pre, post, res = mix.split([STREAMS, STREAMS, STREAMS * STREAMS], dim=-1)
        b_pre, b_post, b_res = self.b.split([STREAMS, STREAMS, STREAMS * STREAMS])
        h_pre = torch.sigmoid(pre * self.alpha[0] + b_pre)
        h_post = 2.0 * torch.sigmoid(post * self.alpha[1] + b_post)
        logits = (res * self.alpha[2] + b_res).view(-1, STREAMS, STREAMS)
        matrix = torch.softmax(logits, dim=-1) + 1e-6
        matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        for _ in range(STEPS - 1):
            matrix = matrix / (matrix.sum(-1, keepdim=True) + 1e-6)
            matrix = matrix / (matrix.sum(-2, keepdim=True) + 1e-6)
        return h_pre, h_post, matrix


def get_inputs():
    return [torch.randn(TOKENS, STREAMS, WIDTH).to(torch.bfloat16)]


def get_init_inputs():
    return []
