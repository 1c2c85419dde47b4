"""Modules that misuse the process that collects them."""

import os
import pathlib
import signal
import socket

import torch
from torch import nn

ESCAPE = "/tmp/nereid_harvest_escaped"


class Writer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        for folder in ("/tmp", os.path.expanduser("~"), os.path.dirname(__file__), "/work"):
            try:
                pathlib.Path(folder, "nereid_harvest_escaped").write_text("out")
            except OSError:
                pass
        try:
            socket.socket()
            pathlib.Path(ESCAPE).write_text("a socket")
        except OSError:
            pass

    def forward(self, x):
        return torch.tanh(x) - 1


class Endless(nn.Module):
    def __init__(self, dim):
        super().__init__()
        while True:
            pass

    def forward(self, x):
        return x


class Deaf(nn.Module):
    """Ignores the signal that ends what takes too long."""

    def __init__(self, dim):
        super().__init__()
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        while True:
            pass

    def forward(self, x):
        return x


class Ends(nn.Module):
    def __init__(self, dim):
        super().__init__()
        os._exit(7)

    def forward(self, x):
        return x


class Exits(nn.Module):
    def __init__(self, dim):
        super().__init__()
        raise SystemExit(3)

    def forward(self, x):
        return x
