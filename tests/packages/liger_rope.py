"""liger-kernel: rotary embedding, halves rotated.

reference: references/liger_rope.py
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

from liger_kernel.ops.rope import LigerRopeFunction  # noqa: E402

BATCH = 2
HEADS = 4
KV_HEADS = 2
LENGTH = 9
WIDTH = 32


class ModelNew(nn.Module):
    def forward(self, q, k, angle):
        angle = torch.cat([angle, angle], dim=-1)[None]
        return LigerRopeFunction.apply(q, k, angle.cos(), angle.sin())
