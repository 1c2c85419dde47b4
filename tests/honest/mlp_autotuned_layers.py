"""A perceptron of six layers by one autotuned kernel, whose configurations add up in different orders, and an autotuned norm.

reference: ../tasks/mlp_six.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRODUCTS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=w)
    for m, n, k, w in ((16, 32, 32, 4), (32, 32, 16, 4), (16, 64, 64, 4), (32, 64, 32, 8))
]
NORMS = [triton.Config({"ROWS": rows}) for rows in (1, 2, 4)]


@triton.autotune(configs=PRODUCTS, key=["N", "K"])
@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, M, N, K, RELU: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.autotune(configs=NORMS, key=["cols"])
@triton.jit
def norm_kernel(x_ptr, weight_ptr, out_ptr, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, 1) / cols + eps)
    weight = tl.load(weight_ptr + c, mask=c < cols, other=0.0)
    tl.store(out_ptr + r[:, None] * cols + c[None, :], x * scale[:, None] * weight[None, :], mask=inside)


class ModelNew(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)

    def linear(self, x, layer):
        (M, K), N = x.shape, layer.weight.shape[0]
        out = torch.empty((M, N), device=x.device, dtype=x.dtype)
        grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))
        linear_kernel[grid](x, layer.weight, layer.bias, out, M, N, K, RELU=True)
        return out

    def normalize(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(rows, meta["ROWS"]),)
        norm_kernel[grid](x, self.norm.weight, out, rows, cols, 1e-5, BLOCK=triton.next_power_of_2(cols))
        return out

    def forward(self, x):
        for layer in self.layers:
            x = self.normalize(self.linear(x, layer))
        return x
