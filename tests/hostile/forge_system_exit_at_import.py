"""Leaves while it is imported.

reference: ../tasks/relu.py
verdict: Untraceable or Malformed
why: leaving is not answering.
"""
import sys

import torch.nn as nn


class ModelNew(nn.Module):
    pass


sys.exit(0)
