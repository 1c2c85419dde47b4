import torch
import torch.nn as nn

BATCH = 3
LENGTH = 6
CLASSES = 97
TEMPERATURE = 0.9


class Model(nn.Module):
    def forward(self, logits, ids):
        return torch.log_softmax(logits[:, :-1] / TEMPERATURE, -1).gather(-1, ids[..., None])[..., 0]


def get_inputs():
    return [torch.randn(BATCH, LENGTH + 1, CLASSES), torch.randint(0, CLASSES, (BATCH, LENGTH))]


def get_init_inputs():
    return []
