"""Is no Python.

reference: ../tasks/relu.py
verdict: Malformed or Untraceable
rule: syntax or no-model-class or python-error
why: it cannot be imported.
"""
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x)
        return x
