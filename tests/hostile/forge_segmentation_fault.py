"""Reads address nought.

reference: ../tasks/relu.py
verdict: Untraceable
why: a child that dies of its own doing is the candidate's fault, not ours.
"""
import ctypes

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return ctypes.string_at(0)
