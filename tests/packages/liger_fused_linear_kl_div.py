"""liger-kernel: a linear layer and its Kullback-Leibler divergence in chunks; the product is torch's.

reference: references/liger_fused_linear_kl_div.py
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

from liger_kernel.ops.fused_linear_kl_div import LigerFusedLinearKLDivFunction  # noqa: E402

ROWS = 24
WIDTH = 32
CLASSES = 150


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, WIDTH) / WIDTH**0.5)

    def forward(self, x, b):
        return LigerFusedLinearKLDivFunction.apply(x, self.weight, torch.softmax(b, -1))
