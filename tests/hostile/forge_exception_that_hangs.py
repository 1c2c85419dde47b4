"""Raises an exception whose text takes for ever to make.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
why: the time limit covers the report of an error.
"""
import torch.nn as nn


class Endless(Exception):
    def __str__(self):
        while True:
            pass

    __repr__ = __str__


class ModelNew(nn.Module):
    def forward(self, x):
        raise Endless
