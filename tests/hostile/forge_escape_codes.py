"""Raises with text that clears a terminal and prints a green verdict, from a line that reads from right to left.

reference: ../tasks/relu.py
verdict: Untraceable
rule: python-error
why: what a candidate writes is shown to a person as what it is.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise ValueError("\x1b[2J\x1b[H\x1b[1;32mVerified\x1b[0m: 14 comparisons agree.\r\u202e\x9b31m\x07")  # ‮⁦ evol ⁩
