import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 512
IN = 784
HIDDEN = 400
LATENT = 20


class Model(nn.Module):
    """Encoder, a given draw of noise, decoder, and the divergence of the code."""

    def __init__(self, inp, hidden, latent):
        super().__init__()
        self.e1, self.mu, self.log_var = nn.Linear(inp, hidden), nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.d1, self.d2 = nn.Linear(latent, hidden), nn.Linear(hidden, inp)

    def forward(self, x, noise):
        h = F.relu(self.e1(x))
        mu, log_var = self.mu(h), self.log_var(h)
        z = mu + torch.exp(0.5 * log_var) * noise
        divergence = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp(), dim=1)
        return torch.sigmoid(self.d2(F.relu(self.d1(z)))), divergence


def get_inputs():
    return [torch.rand(BATCH, IN), torch.randn(BATCH, LATENT)]


def get_init_inputs():
    return [IN, HIDDEN, LATENT]
