"""Both layers in one kernel: the hidden tile never leaves the program.

reference: ../tasks/mlp.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mlp_kernel(
    x_ptr, w1_ptr, b1_ptr, w2_ptr, b2_ptr, out_ptr, M, K, H, N,
    BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    k = tl.arange(0, BLOCK_K)
    n = tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, H, BLOCK_H):
        h = start + tl.arange(0, BLOCK_H)
        w1 = tl.load(w1_ptr + h[None, :] * K + k[:, None], mask=(h[None, :] < H) & (k[:, None] < K), other=0.0)
        hidden = tl.dot(x, w1, input_precision="ieee") + tl.load(b1_ptr + h, mask=h < H, other=0.0)[None, :]
        hidden = tl.maximum(hidden, 0.0)
        w2 = tl.load(w2_ptr + n[None, :] * H + h[:, None], mask=(n[None, :] < N) & (h[:, None] < H), other=0.0)
        acc = tl.dot(hidden, w2, acc, input_precision="ieee")
    acc += tl.load(b2_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super().__init__()
        self.up = nn.Linear(in_features, hidden)
        self.down = nn.Linear(hidden, out_features)

    def forward(self, x):
        (M, K), H, N = x.shape, self.up.out_features, self.down.out_features
        out = x.new_empty(M, N)
        mlp_kernel[(triton.cdiv(M, 16),)](
            x, self.up.weight, self.up.bias, self.down.weight, self.down.bias, out, M, K, H, N,
            BLOCK_M=16, BLOCK_K=triton.next_power_of_2(K), BLOCK_H=32, BLOCK_N=triton.next_power_of_2(N),
        )
        return out
