"""liger-kernel: cross entropy and total variation distance in one pass.

reference: references/liger_fused_ce_tvd.py
verdict: Verified or Mismatch
rule: values
why: between nearly equal distributions the distance is all cancellation; the kernel rounds the log-sum-exp first.
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

from liger_kernel.ops.fused_ce_tvd import LigerFusedCETVDFunction  # noqa: E402

ROWS = 17
CLASSES = 301


class ModelNew(nn.Module):
    def forward(self, student, teacher, target):
        return LigerFusedCETVDFunction.apply(student, teacher, target, -100)
