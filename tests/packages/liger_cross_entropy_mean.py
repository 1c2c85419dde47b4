"""liger-kernel: cross entropy (mean).

reference: liger_cross_entropy_mean.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

ROWS = 33
CLASSES = 517


def apply(logits, target, ignore_index=-100, label_smoothing=0.0, reduction="mean"):
    return LigerCrossEntropyFunction.apply(
        logits, target, None, ignore_index, 0.0, label_smoothing, reduction, None, False, False, False
    )


class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        outputs = apply(logits.clone(), target, reduction="mean")
        return outputs[0] if isinstance(outputs, tuple) else outputs


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randint(0, CLASSES, (ROWS,))]


def get_init_inputs():
    return []
