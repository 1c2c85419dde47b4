"""liger-kernel: causal scores, softmax, a convolution over them (torch's), masked again.

reference: references/liger_multi_token_attention.py
verdict: Verified
policy: hybrid
"""
import os
import sys
import types

import liger_kernel
import torch
import torch.nn as nn

# One module of the package, not all of them: that takes seconds.
package = types.ModuleType("liger_kernel.ops")
package.__path__ = [os.path.join(liger_kernel.__path__[0], "ops")]
sys.modules[package.__name__] = package

from liger_kernel.ops.multi_token_attention import LigerMultiTokenAttentionFunction  # noqa: E402

BATCH = 2
HEADS = 4
LENGTH = 20


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(HEADS, HEADS, 3, 3) / 6.0)
        self.bias = nn.Parameter(torch.zeros(HEADS))

    def forward(self, scores):
        return LigerMultiTokenAttentionFunction.apply(scores, self.weight, self.bias, 1, 1, 1, 1, False)
