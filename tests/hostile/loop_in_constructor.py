"""Sleeps for ever in the constructor.

reference: ../tasks/relu.py
verdict: TimedOut
rule: time-limit
why: each phase has a time limit, and it counts time, not work.
"""
import time

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        while True:
            time.sleep(3600)
