"""liger-kernel: RMS norm, sixteen narrow rows a program.

reference: references/liger_rms_norm_blocks.py
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

from liger_kernel.ops.rms_norm import LigerRMSNormFunction  # noqa: E402

ROWS = 32777
WIDTH = 24


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return LigerRMSNormFunction.apply(x, self.weight, 1e-6, 0.0, "llama", False, None)
