"""Reads from a pipe without a writer.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
rule: time-limit or python-error or not-traceable
why: the limit counts time, not work.
"""
import os

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        read_end, _ = os.pipe()
        os.read(read_end, 1)
        return x
