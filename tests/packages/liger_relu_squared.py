"""liger-kernel: ReLU squared.

reference: references/liger_relu_squared.py
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

from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction  # noqa: E402

ROWS = 18
WIDTH = 130


class ModelNew(nn.Module):
    def forward(self, x):
        return LigerReLUSquaredFunction.apply(x)
