"""Kills itself, as if the machine had run out of memory.

reference: ../tasks/relu.py
verdict: Untraceable
why: a child that dies of its own doing is the candidate's fault, not ours.
"""
import os
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
        return x
