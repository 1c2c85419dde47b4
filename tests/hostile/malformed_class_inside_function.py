"""ModelNew exists only inside a function that is never called.

reference: ../tasks/relu.py
verdict: Malformed
rule: no-model-class
why: there is nothing to judge.
"""
import torch
import torch.nn as nn


def build():
    class ModelNew(nn.Module):
        def forward(self, x):
            return torch.relu(x)

    return ModelNew
