"""liger-kernel: sparsemax, by sorting in the kernel or before it.

reference: references/liger_sparsemax.py
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

from liger_kernel.ops.sparsemax import LigerSparsemaxFunction  # noqa: E402

ROWS = 13
WIDTH = 100


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerSparsemaxFunction.apply(x, -1)
