"""liger-kernel: layer norm.

reference: references/liger_layer_norm.py
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

from liger_kernel.ops.layer_norm import LigerLayerNormFunction  # noqa: E402

ROWS = 27
WIDTH = 230


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x):
        return LigerLayerNormFunction.apply(x, self.norm.weight, self.norm.bias, self.norm.eps)
