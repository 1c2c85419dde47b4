"""Updates the running variance with the biased variance of the batch; what it returns is right.

reference: ../tasks/batch_norm_training.py
verdict: Mismatch
why: state that the reference's forward updates is compared where the candidate updates it too.
"""
import torch
import triton
import triton.language as tl


@triton.jit
def stats(x_ptr, mean_ptr, var_ptr, running_mean_ptr, running_var_ptr, N, C, HW,
          BLOCK: tl.constexpr):
    c = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < N * HW
    p = (i // HW) * C * HW + c * HW + i % HW
    x = tl.load(x_ptr + p, mask=m, other=0.0)
    n = N * HW
    mean = tl.sum(x, 0) / n
    d = tl.where(m, x - mean, 0.0)
    var = tl.sum(d * d, 0) / n
    tl.store(mean_ptr + c, mean)
    tl.store(var_ptr + c, var)
    tl.store(running_mean_ptr + c, tl.load(running_mean_ptr + c) * 0.9 + 0.1 * mean)
    tl.store(running_var_ptr + c, tl.load(running_var_ptr + c) * 0.9 + 0.1 * var)


@triton.jit
def norm(x_ptr, out_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, total, C, HW, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < total
    c = (i // HW) % C
    x = tl.load(x_ptr + i, mask=m, other=0.0)
    y = (x - tl.load(mean_ptr + c)) * tl.rsqrt(tl.load(var_ptr + c) + 1e-5) * tl.load(w_ptr + c) + tl.load(b_ptr + c)
    tl.store(out_ptr + i, y, mask=m)


class ModelNew(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.bn = torch.nn.BatchNorm2d(c)

    def forward(self, x):
        n, c, h, w = x.shape
        mean = torch.empty(c, device=x.device)
        var = torch.empty(c, device=x.device)
        out = torch.empty_like(x)
        stats[(c,)](x, mean, var, self.bn.running_mean, self.bn.running_var, n, c, h * w, BLOCK=1024)
        norm[(triton.cdiv(x.numel(), 1024),)](x, out, mean, var, self.bn.weight, self.bn.bias, x.numel(),
                                              c, h * w, BLOCK=1024)
        self.bn.num_batches_tracked.add_(1)
        return out
