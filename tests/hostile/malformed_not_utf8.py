"""Holds bytes that are no UTF-8.

reference: ../tasks/relu.py
verdict: Malformed
rule: not-text
why: source is text.
"""
import torch
import torch.nn as nn

NAME = "ÿþ€"


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
