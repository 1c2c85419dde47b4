"""A regular expression that backtracks for ever, in C.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: the limit is kept from outside the process.
"""
import re

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        re.match(r"(a|a)*b$", "a" * 64 + "c")
        return x
