"""liger-kernel: gate and up products with SwiGLU through host-side tensor descriptors (bf16); the down product is torch's.

reference: references/liger_mlp.py
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

from liger_kernel.ops.mlp import LigerMLPFunction  # noqa: E402

BATCH = 2
LENGTH = 24
WIDTH = 64
HIDDEN = 96


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter((torch.randn(HIDDEN, WIDTH) / 8.0).to(torch.bfloat16))
        self.up = nn.Parameter((torch.randn(HIDDEN, WIDTH) / 8.0).to(torch.bfloat16))
        self.down = nn.Parameter((torch.randn(WIDTH, HIDDEN) / 10.0).to(torch.bfloat16))

    def forward(self, x):
        return LigerMLPFunction.apply(x, self.gate.detach(), self.up.detach(), self.down.detach())
