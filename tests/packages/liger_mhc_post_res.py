"""liger-kernel: hyper-connections, a layer's output and the streams mixed after it.

reference: references/liger_mhc_post_res.py
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

from liger_kernel.ops.mhc import LigerMHCPostResFunction  # noqa: E402

TOKENS = 37
STREAMS = 4
WIDTH = 72


class ModelNew(nn.Module):
    def forward(self, x, f, h_post, h_res):
        return LigerMHCPostResFunction.apply(x, f, h_post, h_res)
