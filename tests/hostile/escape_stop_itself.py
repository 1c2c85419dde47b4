"""Stops itself, to be waited for without end.

reference: ../tasks/relu.py
verdict: TimedOut|Untraceable
rule: time-limit|sandbox|python-error
why: the time limit counts time, not work.
"""
import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGSTOP)
        return x
