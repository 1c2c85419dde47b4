"""Stops itself, to be waited for without end.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
rule: time-limit or sandbox-limit or python-error or not-traceable
why: the time limit counts time, not work.
"""
import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)
        return x
