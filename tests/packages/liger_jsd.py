"""liger-kernel: generalised Jensen-Shannon divergence of log-probabilities.

reference: references/liger_jsd.py
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

from liger_kernel.ops.jsd import LigerJSDFunction  # noqa: E402

ROWS = 15
CLASSES = 211
BETA = 0.3


class ModelNew(nn.Module):
    def forward(self, a, b):
        x, y = torch.log_softmax(a, -1), torch.log_softmax(b, -1)
        return LigerJSDFunction.apply(x, y, None, BETA)
