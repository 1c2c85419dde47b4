"""Kills itself, as if the machine had run out of memory.

reference: ../tasks/relu.py
verdict: Untraceable or Disallowed
rule: sandbox-limit or no-launch
why: a child that dies of its own doing is the candidate's fault, not ours; the first process of a pid namespace cannot kill itself.
"""
import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
        return x
