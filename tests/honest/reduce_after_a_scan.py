"""Combines the steps of a recurrence by a scan, and takes the last of them.

reference: ../tasks/last_state.py
verdict: Verified
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(a1, h1, a2, h2):
    return a1 * a2, h1 * a2 + h2


@triton.jit
def state_kernel(gate_ptr, x_ptr, out_ptr, LENGTH: tl.constexpr):
    row, t = tl.program_id(0), tl.arange(0, LENGTH)
    gate = tl.sigmoid(tl.load(gate_ptr + row * LENGTH + t))
    x = tl.load(x_ptr + row * LENGTH + t)
    _, states = tl.associative_scan((gate, x), 0, step)
    state = tl.sum(tl.where(t == LENGTH - 1, states, 0.0), 0)
    tl.store(out_ptr + row, state)


class ModelNew(nn.Module):
    def forward(self, gate, x):
        out = torch.empty(x.shape[0], device=x.device)
        state_kernel[(x.shape[0],)](gate, x, out, LENGTH=x.shape[1])
        return out
