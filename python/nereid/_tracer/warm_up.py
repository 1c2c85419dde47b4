"""Traces that are made once in the warmed process, so that children find everything imported and cached."""

REFERENCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.ln = nn.LayerNorm(n)

    def forward(self, x, lengths):
        y = F.relu(self.ln(self.fc(x))) + torch.arange(x.shape[1])
        z = self.norm(self.conv(y[None, None])).sum() * F.softmax(x, dim=-1).mean()
        return torch.cat([y, x @ x.t() @ y], dim=0) * z + int(lengths.max()) + torch.tensor([1.0])


def get_inputs():
    return [torch.randn(8, 8), torch.randint(1, 5, (3,))]


def get_init_inputs():
    return [8]
"""

CANDIDATE = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def helper(x):
    return tl.where(x > 0, tl.exp(x), 0.0)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})],
                 key=["n"])
@triton.jit
def pointwise(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, helper(x) * scale, mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptr + rm[:, None] * sam + (k * BK + rk)[None, :] * sak, mask=rk[None, :] < K - k * BK,
                    other=0.0)
        b = tl.load(b_ptr + (k * BK + rk)[:, None] * N + rn[None, :], mask=rk[:, None] < K - k * BK,
                    other=0.0)
        acc += tl.dot(a, b)
    c = tl.max(acc, axis=1)[:, None] + tl.sum(acc, axis=1)[:, None]
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], (acc + c).to(tl.float16),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x, lengths):
        out = torch.empty_like(x)
        n = x.numel()
        pointwise[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n, 2.0)
        c = torch.zeros(8, 8, device=x.device, dtype=torch.float16)
        matmul[(1, 1)](x, out, c, 8, 8, 8, x.stride(0), x.stride(1), BM=16, BN=16, BK=16)
        return out, c.view(-1), int(lengths.max())
"""


def run(handle):
    reference = handle(
        {"source": REFERENCE, "path": "warm_reference.py", "class": "Model", "draw": 0, "reference": None}
    )
    trace = reference.get("trace")
    if trace is None:
        raise RuntimeError(f"the warm-up reference does not trace: {reference}")
    given = {key: trace[key] for key in ("storages", "values", "init_inputs")}
    given["inputs"] = [phase["inputs"] for phase in trace["phases"] if phase["phase"] == "forward"]
    candidate = handle(
        {"source": CANDIDATE, "path": "warm_candidate.py", "class": "ModelNew", "draw": 0, "reference": given}
    )
    if "trace" not in candidate:
        raise RuntimeError(f"the warm-up candidate does not trace: {candidate}")
