"""Calls torch and nothing else.

reference: ../tasks/relu.py
verdict: Disallowed
rule: no-launch
why: there is no Triton launch in forward.
"""
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
