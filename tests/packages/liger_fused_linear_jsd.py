"""liger-kernel: two linear layers and their Jensen-Shannon divergence in chunks; the products are torch's.

reference: references/liger_fused_linear_jsd.py
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

from liger_kernel.ops.fused_linear_jsd import LigerFusedLinearJSDFunction  # noqa: E402

ROWS = 24
WIDTH = 32
CLASSES = 150


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.student = nn.Parameter(torch.randn(CLASSES, WIDTH) / WIDTH**0.5)
        self.teacher = nn.Parameter(torch.randn(CLASSES, WIDTH) / WIDTH**0.5)

    def forward(self, s, t):
        return LigerFusedLinearJSDFunction.apply(s, self.student, t, self.teacher)
