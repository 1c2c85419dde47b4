"""liger-kernel: embedding.

reference: references/liger_embedding.py
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

from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction  # noqa: E402

VOCABULARY = 90
WIDTH = 40
BATCH = 3
LENGTH = 11


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCABULARY, WIDTH))

    def forward(self, tokens):
        return LigerEmbeddingFunction.apply(self.table, tokens)
