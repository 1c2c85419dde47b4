import torch
import torch.nn as nn

BATCH = 3
LENGTH = 6
CLASSES = 97
TEMPERATURE = 0.9
BETA = 0.04
LOW = 0.2
HIGH = 0.3


def log_probabilities(logits, ids):
    return torch.log_softmax(logits[:, :-1] / TEMPERATURE, -1).gather(-1, ids[..., None])[..., 0]


class Model(nn.Module):
    def forward(self, logits, old, prior, ids, advantage):
        logp = log_probabilities(logits, ids)
        ratio = torch.exp((logp - old).mean(-1, keepdim=True))
        clipped = torch.clamp(ratio, 1 - LOW, 1 + HIGH)
        loss = -torch.minimum(ratio * advantage[:, None], clipped * advantage[:, None])
        divergence = torch.exp(prior - logp) - (prior - logp) - 1
        return (loss + BETA * divergence).mean(-1).mean()


def get_inputs():
    return [torch.randn(BATCH, LENGTH + 1, CLASSES), -4.0 - torch.rand(BATCH, LENGTH), -4.0 - torch.rand(BATCH, LENGTH), torch.randint(0, CLASSES, (BATCH, LENGTH)), torch.randn(BATCH)]


def get_init_inputs():
    return []
