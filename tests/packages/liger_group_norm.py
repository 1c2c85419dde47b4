"""liger-kernel: group norm.

reference: references/liger_group_norm.py
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

from liger_kernel.ops.group_norm import LigerGroupNormFunction  # noqa: E402

BATCH = 3
CHANNELS = 12
GROUPS = 4
LENGTH = 50


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, CHANNELS)

    def forward(self, x):
        return LigerGroupNormFunction.apply(x, self.norm.weight, self.norm.bias, CHANNELS, GROUPS, self.norm.eps)
