"""A CUDA graph over static buffers: inputs are copied in, two autotuned kernels replay, the static output is cloned.

reference: ../tasks/linear_gelu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl

PRODUCTS = [
    triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=4, num_stages=s)
    for m, n, k, s in ((16, 64, 32, 2), (32, 32, 32, 3), (16, 64, 64, 2))
]


@triton.autotune(configs=PRODUCTS, key=["M", "N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, EVEN_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        inside = (k < K) if not EVEN_K else (k >= 0)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & inside[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & inside[:, None], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (256, 512, 1024)], key=["count"])
@triton.jit
def gelu_kernel(y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + at, mask=at < count)
    tl.store(out_ptr + at, 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476)), mask=at < count)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.captured = {}

    def run(self, x, y, out):
        (M, K), N = x.shape, y.shape[1]
        linear_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))](
            x, self.linear.weight, self.linear.bias, y, M, N, K
        )
        gelu_kernel[lambda meta: (triton.cdiv(M * N, meta["BLOCK"]),)](y, out, M * N)

    def capture(self, x):
        shape = (x.shape[0], self.linear.out_features)
        static = torch.empty_like(x)
        y, out = (torch.empty(shape, device=x.device, dtype=x.dtype) for _ in range(2))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            static.copy_(x)
            for _ in range(2):
                self.run(static, y, out)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.run(static, y, out)
        return graph, static, out

    def forward(self, x):
        key = (tuple(x.shape), x.dtype)
        if key not in self.captured:
            self.captured[key] = self.capture(x)
        graph, static, out = self.captured[key]
        static.copy_(x)
        graph.replay()
        return out.clone()
