import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
LENGTH = 64
CHANNELS = 256
STATES = 16


class Model(nn.Module):
    """A state-space layer whose step, input and output depend on the token; its state goes along the sequence."""

    def __init__(self, channels, states):
        super().__init__()
        self.log_a = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(channels, 1))
        self.d = nn.Parameter(torch.ones(channels))
        self.to_b, self.to_c = nn.Linear(channels, states, bias=False), nn.Linear(channels, states, bias=False)
        self.to_step = nn.Linear(channels, channels)

    def forward(self, x):
        step = F.softplus(self.to_step(x))
        b, c = self.to_b(x), self.to_c(x)
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.log_a))
        fed = (step * x).unsqueeze(-1) * b.unsqueeze(2)
        state = torch.zeros_like(fed[:, 0])
        outputs = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + fed[:, t]
            outputs.append((state * c[:, t].unsqueeze(1)).sum(-1))
        return torch.stack(outputs, dim=1) + self.d * x


def get_inputs():
    return [torch.randn(BATCH, LENGTH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS, STATES]
