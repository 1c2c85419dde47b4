"""liger-kernel: cross entropy (smoothed, ignoring).

reference: references/liger_cross_entropy_smoothed_ignoring.py
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

from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction  # noqa: E402

ROWS = 33
CLASSES = 517


def apply(logits, target, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    return LigerCrossEntropyFunction.apply(
        logits, target, None, ignore_index, 0.0, label_smoothing, reduction, None, False, False, False
    )


class ModelNew(nn.Module):
    def forward(self, logits, target):
        outputs = apply(logits.clone(), target, reduction="sum", ignore_index=3, label_smoothing=0.1)
        return outputs[0] if isinstance(outputs, tuple) else outputs
