"""Autotuned with a key, early pruning, a performance model's top_k and a configuration's own pre_hook.

reference: ../tasks/scale_add.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def fits(configs, named_args, **kwargs):
    kept = [c for c in configs if c.kwargs["BLOCK"] <= named_args["n"]]
    return kept or configs[:1]


def guess(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK, num_warps, **_):
    return abs(BLOCK - 1024) + num_warps


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b in (256, 512, 1024, 1 << 18) for w in (2, 4)],
    key=["n"],
    prune_configs_by={"early_config_prune": fits, "perf_model": guess, "top_k": 3},
)
@triton.jit
def scale_add(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.fma(x, tl.full((BLOCK,), 1.0, tl.float32) * alpha, y), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, alpha):
        super().__init__()
        self.alpha = alpha

    def forward(self, x, y):
        out = torch.empty_like(y)
        grid = lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)
        scale_add[grid](x, y, out, self.alpha, out.numel())
        return out
