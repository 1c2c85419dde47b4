"""Raises in forward.

reference: ../tasks/relu.py
verdict: Untraceable
rule: python-error or not-traceable
why: the error and its line are reported.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return [x][5]
