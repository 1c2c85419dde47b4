"""liger-kernel: rotary embedding with complex frequencies (pairs interleaved), in place on copies.

reference: references/liger_llama4_rope.py
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

from liger_kernel.ops.llama4_rope import LigerLlama4RopeFunction  # noqa: E402

BATCH = 2
LENGTH = 7
HEADS = 4
KV_HEADS = 2
WIDTH = 32


class ModelNew(nn.Module):
    def forward(self, q, k, angle):
        frequencies = torch.stack([angle.cos(), angle.sin()], dim=-1)
        return LigerLlama4RopeFunction.apply(q.clone(), k.clone(), frequencies)
