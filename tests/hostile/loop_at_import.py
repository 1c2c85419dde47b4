"""Loops for ever while it is imported.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: each phase has a time limit.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    pass


while True:
    pass
