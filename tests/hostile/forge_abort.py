"""Aborts its process.

reference: ../tasks/relu.py
verdict: Untraceable
why: a child that dies of its own doing is the candidate's fault, not ours.
"""
import os

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.abort()
