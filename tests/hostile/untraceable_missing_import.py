"""Imports a package that is not installed.

reference: ../tasks/relu.py
verdict: Untraceable
rule: python-error or not-traceable
why: the error and its line are reported.
"""
import nereid_no_such_package  # noqa: F401
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x
