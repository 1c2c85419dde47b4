"""The reference copies a transposed matrix; a view of the input is returned instead, without a launch.

reference: ../tasks/transposed_copy.py
verdict: Disallowed
rule: no-launch
why: the reference's output is not a view: a caller that keeps it is not affected by later writes to the input.
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)
