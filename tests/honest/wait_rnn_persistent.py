"""A recurrence in one launch: programs hold slices of the state and meet at a barrier after every step.

reference: ../tasks/rnn_tanh.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def rnn_kernel(
    x_ptr, wi_ptr, bi_ptr, wr_ptr, states_ptr, last_ptr, count_ptr, B, T, I,
    H: tl.constexpr, SLICE: tl.constexpr, BLOCK_B: tl.constexpr, BLOCK_I: tl.constexpr,
):
    b = tl.arange(0, BLOCK_B)
    i = tl.arange(0, BLOCK_I)
    h = tl.arange(0, H)
    out = tl.program_id(0) * SLICE + tl.arange(0, SLICE)
    live = b[:, None] < B
    wi = tl.load(wi_ptr + out[None, :] * I + i[:, None], mask=i[:, None] < I, other=0.0)
    wr = tl.load(wr_ptr + out[None, :] * H + h[:, None])
    bias = tl.load(bi_ptr + out)
    for t in range(T):
        x = tl.load(x_ptr + (b[:, None] * T + t) * I + i[None, :], mask=live & (i[None, :] < I), other=0.0)
        pre = tl.dot(x, wi, input_precision="ieee")
        if t > 0:
            before = tl.load(states_ptr + (b[:, None] * T + t - 1) * H + h[None, :], mask=live, other=0.0)
            pre += tl.dot(before, wr, input_precision="ieee")
        state = libdevice.tanh(pre + bias[None, :])
        tl.store(states_ptr + (b[:, None] * T + t) * H + out[None, :], state, mask=live)
        if t == T - 1:
            tl.store(last_ptr + b[:, None] * H + out[None, :], state, mask=live)
        tl.debug_barrier()
        tl.atomic_add(count_ptr, 1)
        while tl.atomic_add(count_ptr, 0) < (t + 1) * tl.num_programs(0):
            pass


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden):
        super().__init__()
        self.inp = nn.Linear(in_features, hidden)
        self.rec = nn.Linear(hidden, hidden, bias=False)
        self.hidden = hidden

    def forward(self, x):
        B, T, I = x.shape
        states = torch.empty((B, T, self.hidden), device=x.device, dtype=x.dtype)
        last = torch.empty((B, self.hidden), device=x.device, dtype=x.dtype)
        count = torch.zeros(1, device=x.device, dtype=torch.int32)
        rnn_kernel[(self.hidden // 16,)](
            x, self.inp.weight, self.inp.bias, self.rec.weight, states, last, count, B, T, I,
            H=self.hidden, SLICE=16, BLOCK_B=16, BLOCK_I=triton.next_power_of_2(I),
        )
        return states, last
