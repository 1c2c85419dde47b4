"""Loops for ever in forward.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: each phase has a time limit.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
