"""Returns a generator that would compute the answer.

reference: ../tasks/argmax.py
verdict: Mismatch or Untraceable or Disallowed
rule: output-structure or output-without-launch or python-error or not-traceable or no-launch
why: the reference returns a pair of tensors.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, x):
        return (f(x, -1) for f in (torch.amax, torch.argmax))
