"""liger-kernel: the clipped policy loss with a divergence penalty, token by token.

reference: references/liger_grpo_loss.py
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

from liger_kernel.ops.grpo_loss import GrpoLossFunction  # noqa: E402

BATCH = 3
LENGTH = 6
CLASSES = 97
TEMPERATURE = 0.9
BETA = 0.04
LOW = 0.2
HIGH = 0.3


class ModelNew(nn.Module):
    def forward(self, logits, old, prior, ids, advantage):
        outputs = GrpoLossFunction.apply(
            logits, old, prior, ids, advantage, None, TEMPERATURE, BETA, LOW, HIGH, False, "grpo"
        )
        return outputs[0]
