"""Raises KeyboardInterrupt, as if a user had stopped the judge.

reference: ../tasks/relu.py
verdict: Untraceable
why: the interrupt is the candidate's, not the user's.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise KeyboardInterrupt
