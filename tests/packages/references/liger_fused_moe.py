import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 20
EXPERTS = 4
TOP = 2
WIDTH = 64
INNER = 64


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Parameter((torch.randn(EXPERTS, 2 * INNER, WIDTH) / 8.0).to(torch.bfloat16))
        self.down = nn.Parameter((torch.randn(EXPERTS, WIDTH, INNER) / 8.0).to(torch.bfloat16))

    def forward(self, x, index, weight):
        out = torch.zeros(TOKENS, WIDTH, dtype=torch.float32, device=x.device)
        for k in range(TOP):
            up = torch.einsum("tw,tiw->ti", x.float(), self.up[index[:, k].long()].float())
            gate, value = up.chunk(2, dim=-1)
            inner = (F.silu(gate) * value).to(x.dtype).float()
            down = torch.einsum("ti,twi->tw", inner, self.down[index[:, k].long()].float())
            out = out + down.to(x.dtype).float() * weight[:, k, None]
        return out.to(x.dtype)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH).to(torch.bfloat16), torch.randint(0, EXPERTS, (TOKENS, TOP), dtype=torch.int32), torch.rand(TOKENS, TOP)]


def get_init_inputs():
    return []
