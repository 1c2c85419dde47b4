"""liger-kernel: SiLU times gate.

reference: references/liger_swiglu.py
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

from liger_kernel.ops.swiglu import LigerSiLUMulFunction  # noqa: E402

ROWS = 23
WIDTH = 170


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerSiLUMulFunction.apply(a, b)
