import torch
import torch.nn as nn

BATCH = 8
IN = 256
OUT = 64
SIDE = 32


class Model(nn.Module):
    """Convolutions of several dilations and the image's mean, joined and projected."""

    def __init__(self, inp, out):
        super().__init__()
        self.rates = nn.ModuleList([nn.Conv2d(inp, out, 3, padding=r, dilation=r) for r in (1, 6, 12)])
        self.image = nn.Conv2d(inp, out, 1)
        self.project = nn.Conv2d(4 * out, out, 1)

    def forward(self, x):
        parts = [torch.relu(conv(x)) for conv in self.rates]
        whole = torch.relu(self.image(x.mean((2, 3), keepdim=True)))
        parts.append(whole.expand(-1, -1, x.shape[2], x.shape[3]))
        return torch.relu(self.project(torch.cat(parts, dim=1)))


def get_inputs():
    return [torch.randn(BATCH, IN, SIDE, SIDE)]


def get_init_inputs():
    return [IN, OUT]
