"""liger-kernel: a mixture of experts, routing worked out from integer inputs (bf16).

reference: references/liger_fused_moe.py
verdict: Untraceable or Verified
rule: reads-data
why: the package reads back, on the host, routing that a kernel of its own worked out.
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

from liger_kernel.ops.fused_moe import LigerFusedMoEFunction  # noqa: E402

TOKENS = 20
EXPERTS = 4
TOP = 2
WIDTH = 64
INNER = 64


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter((torch.randn(EXPERTS, 2 * INNER, WIDTH) / 8.0).to(torch.bfloat16))
        self.down = nn.Parameter((torch.randn(EXPERTS, WIDTH, INNER) / 8.0).to(torch.bfloat16))

    def forward(self, x, index, weight):
        return LigerFusedMoEFunction.apply(x, self.up, self.down, index, weight)
