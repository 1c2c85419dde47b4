"""liger-kernel: log-probabilities of given tokens only.

reference: references/liger_selective_log_softmax.py
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

from liger_kernel.ops.grpo_loss import fused_selective_log_softmax  # noqa: E402

BATCH = 3
LENGTH = 6
CLASSES = 97
TEMPERATURE = 0.9


class ModelNew(nn.Module):
    def forward(self, logits, ids):
        return fused_selective_log_softmax(logits, ids, TEMPERATURE)
