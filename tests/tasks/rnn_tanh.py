import torch
import torch.nn as nn

BATCH = 12
STEPS = 9
IN = 20
HIDDEN = 32


class Model(nn.Module):
    """A plain recurrence; every state and the last one."""

    def __init__(self, in_features, hidden):
        super().__init__()
        self.inp = nn.Linear(in_features, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        self.hidden = hidden

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.hidden, dtype=x.dtype, device=x.device)
        states = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inp(x[:, t]) + self.rec(h))
            states.append(h)
        return torch.stack(states, dim=1), h


def get_inputs():
    return [torch.randn(BATCH, STEPS, IN)]


def get_init_inputs():
    return [IN, HIDDEN]
