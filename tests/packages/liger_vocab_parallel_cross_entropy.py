"""liger-kernel: cross entropy as each rank of a tensor-parallel group computes it, with one rank.

reference: references/liger_vocab_parallel_cross_entropy.py
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

from liger_kernel.ops.vocab_parallel_cross_entropy import LigerVocabParallelCEFunction  # noqa: E402

LENGTH = 7
BATCH = 3
CLASSES = 151


class ModelNew(nn.Module):
    def forward(self, logits, target):
        return LigerVocabParallelCEFunction.apply(logits, target, None, -100, 0.0, "megatron", "global")
