"""liger-kernel: hyper-connections, a layer's output and the streams mixed after it.

reference: liger_mhc_post_res.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
from liger_kernel.ops.mhc import LigerMHCPostResFunction

TOKENS = 37
STREAMS = 4
WIDTH = 72


class Model(nn.Module):
    def forward(self, x, f, h_post, h_res):
        return h_post[..., None] * f[:, None] + h_res @ x


class ModelNew(nn.Module):
    def forward(self, x, f, h_post, h_res):
        return LigerMHCPostResFunction.apply(x, f, h_post, h_res)


def get_inputs():
    return [torch.randn(TOKENS, STREAMS, WIDTH), torch.randn(TOKENS, WIDTH), torch.rand(TOKENS, STREAMS), torch.rand(TOKENS, STREAMS, STREAMS)]


def get_init_inputs():
    return []
