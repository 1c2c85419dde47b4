"""Waits for a lock that is never released.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: the limit counts time, not work.
"""
import threading

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
        return x
