"""Lets torch.compile write the kernel.

reference: ../tasks/gelu.py
verdict: Disallowed
rule: no-launch
why: a compiled module is traced as its eager form, which is torch.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.compile(mode="max-autotune")
def gelu(x):
    return F.gelu(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return gelu(x)
