"""Raises SystemExit(0).

reference: ../tasks/relu.py
verdict: Untraceable
why: leaving is not answering.
"""
import sys

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)
