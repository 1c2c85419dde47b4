import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
CHANNELS = 512
HIDDEN = 4096
CLASSES = 1000


class Model(nn.Module):
    """The fully connected end of a large image classifier, dropout switched off."""

    def __init__(self, channels, hidden, classes):
        super().__init__()
        self.classifier = nn.Sequential(
            nn.Linear(channels * 49, hidden), nn.ReLU(True), nn.Dropout(), nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(), nn.Linear(hidden, classes)
        )
        self.eval()

    def forward(self, x):
        return self.classifier(torch.flatten(F.adaptive_avg_pool2d(x, (7, 7)), 1))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, 14, 14)]


def get_init_inputs():
    return [CHANNELS, HIDDEN, CLASSES]
