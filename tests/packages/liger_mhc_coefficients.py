"""liger-kernel: hyper-connection coefficients, by a product and Sinkhorn's iteration (bf16 operands).

reference: references/liger_mhc_coefficients.py
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

from liger_kernel.ops.mhc import LigerMHCCoeffsFunction  # noqa: E402

TOKENS = 14
STREAMS = 4
WIDTH = 32
STEPS = 3
M = STREAMS * STREAMS + 2 * STREAMS


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi = nn.Parameter((torch.randn(STREAMS * WIDTH, M) / 11.0).to(torch.bfloat16))
        self.b = nn.Parameter(torch.zeros(M))
        self.alpha = nn.Parameter(torch.full((3,), 0.7))

    def forward(self, x):
        pre, post, res = self.alpha[0:1], self.alpha[1:2], self.alpha[2:3]
        return LigerMHCCoeffsFunction.apply(x, self.phi, self.b, pre, post, res, False, STEPS, 1e-6, 0.0, 1e-6, 2.0)
