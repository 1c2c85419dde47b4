"""Stops itself, to be waited for without end.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable or Disallowed
rule: time-limit or sandbox-limit or no-launch
why: the time limit counts time, not work; the first process of a pid namespace cannot stop itself.
"""
import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)
        return x
