import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
CLASSES = 8192
HEAT = 2.0


class Model(nn.Module):
    """What the student says against what the teacher says, both softened."""

    def forward(self, student, teacher):
        log_p = F.log_softmax(student / HEAT, dim=-1)
        q = F.softmax(teacher / HEAT, dim=-1)
        return F.kl_div(log_p, q, reduction="batchmean") * HEAT**2


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randn(ROWS, CLASSES)]


def get_init_inputs():
    return []
