"""liger-kernel: RMS norm with scale and shift for each sample.

reference: references/liger_modulated_rms_norm.py
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

from liger_kernel.ops.modulated_rms_norm import LigerModulatedRMSNormFunction  # noqa: E402

BATCH = 3
LENGTH = 8
WIDTH = 144


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x, scale, shift):
        return LigerModulatedRMSNormFunction.apply(x, self.weight, scale, shift, 1e-6, 0.0, "llama", False)
