import torch
import torch.nn as nn

BATCH = 32
LENGTH = 64
IN = 128
HIDDEN = 256


class Model(nn.Module):
    def __init__(self, inp, hidden):
        super().__init__()
        self.lstm = nn.LSTM(inp, hidden, batch_first=True)

    def forward(self, x):
        out, (h, c) = self.lstm(x)
        return out, h, c


def get_inputs():
    return [torch.randn(BATCH, LENGTH, IN)]


def get_init_inputs():
    return [IN, HIDDEN]
