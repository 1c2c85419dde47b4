"""One instruction of Python that takes hours and cannot be interrupted.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
rule: time-limit or sandbox-limit
why: the limit is kept from outside the process.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (3 ** (10**9) % 7)
