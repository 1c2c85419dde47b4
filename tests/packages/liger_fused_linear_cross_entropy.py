"""liger-kernel: a linear layer and cross entropy in chunks; the product is torch's.

reference: references/liger_fused_linear_cross_entropy.py
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

from liger_kernel.ops.fused_linear_cross_entropy import LigerFusedLinearCrossEntropyFunction  # noqa: E402

ROWS = 40
WIDTH = 32
CLASSES = 259


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CLASSES, WIDTH) / WIDTH**0.5)

    def forward(self, x, target):
        outputs = LigerFusedLinearCrossEntropyFunction.apply(x, self.weight, target)
        return outputs[0] if isinstance(outputs, tuple) else outputs
