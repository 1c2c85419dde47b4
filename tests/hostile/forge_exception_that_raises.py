"""Raises an exception that cannot be printed.

reference: ../tasks/relu.py
verdict: Untraceable
why: reporting an error must not fail because of the error.
"""
import torch.nn as nn


class Unprintable(Exception):
    def __str__(self):
        raise RecursionError("no text")

    __repr__ = __str__


class ModelNew(nn.Module):
    def forward(self, x):
        raise Unprintable
