"""liger-kernel: int8 activations times weights of two bits.

reference: references/liger_int8_int2_matmul.py
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

from liger_kernel.ops.experimental.mm_int8int2 import matmul, pack_weights  # noqa: E402

M = 24
N = 40
K = 1024


class ModelNew(nn.Module):
    def forward(self, a, w):
        return matmul(a, pack_weights(w.clone())).float()
