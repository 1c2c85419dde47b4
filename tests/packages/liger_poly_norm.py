"""liger-kernel: a weighted sum of normalised powers.

reference: references/liger_poly_norm.py
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

from liger_kernel.ops.poly_norm import LigerPolyNormFunction  # noqa: E402

ROWS = 18
WIDTH = 130


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 1.0 / 3.0))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return LigerPolyNormFunction.apply(x, self.weight, self.bias, 1e-6, False)
