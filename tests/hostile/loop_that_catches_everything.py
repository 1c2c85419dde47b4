"""Loops for ever, catching whatever might end it and ignoring every signal it can.

reference: ../tasks/relu.py
verdict: TimedOut or Untraceable
rule: time-limit or sandbox-limit
why: what ends it cannot be caught.
"""
import signal

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
