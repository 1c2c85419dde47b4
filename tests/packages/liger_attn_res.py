"""liger-kernel: softmax attention over the residual blocks of all depths.

reference: references/liger_attn_res.py
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

from liger_kernel.ops.attn_res import LigerAttnResFunction  # noqa: E402

BLOCKS = 5
BATCH = 2
LENGTH = 9
WIDTH = 48


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Parameter(torch.randn(WIDTH) / WIDTH**0.5)
        self.norm = nn.Parameter(torch.ones(WIDTH))

    def forward(self, v):
        return LigerAttnResFunction.apply(v, self.query, self.norm, 1e-6)
