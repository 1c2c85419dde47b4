"""liger-kernel: total variation distance (none).

reference: references/liger_tvd_none.py
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

from liger_kernel.ops.tvd import LigerTVDLossFunction  # noqa: E402

ROWS = 15
CLASSES = 211


class ModelNew(nn.Module):
    def forward(self, a, b):
        return LigerTVDLossFunction.apply(torch.softmax(a, -1), torch.softmax(b, -1), None, "none")
