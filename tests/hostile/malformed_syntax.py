"""Is no Python.

reference: ../tasks/relu.py
verdict: Malformed|Untraceable
rule: no-model-class|python-error|SyntaxError|syntax
why: it cannot be imported.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x)
        return x
