import torch
import torch.nn as nn

BATCH = 64
LENGTH = 32
IN = 64
HIDDEN = 128
CLASSES = 20


class Model(nn.Module):
    def __init__(self, inp, hidden, classes):
        super().__init__()
        self.gru = nn.GRU(inp, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        out, _ = self.gru(x)
        return torch.log_softmax(self.head(out[:, -1]), dim=-1)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, IN)]


def get_init_inputs():
    return [IN, HIDDEN, CLASSES]
