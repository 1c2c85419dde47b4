"""Recurses in C until the stack is gone.

reference: ../tasks/relu.py
verdict: Untraceable
why: a child that dies of its own doing is the candidate's fault.
"""
import sys

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        sys.setrecursionlimit(1 << 30)

        class Endless(list):
            def __repr__(self):
                return repr([Endless()])

        return repr(Endless())
