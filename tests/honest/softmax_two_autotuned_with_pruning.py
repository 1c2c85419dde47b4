"""Row maxima, exponentials and quotients by three kernels, each autotuned over warps, stages and blocks with pruning.

reference: ../tasks/softmax.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


def too_wide(configs, named_args, **kwargs):
    cols = named_args["cols"]
    kept = [config for config in configs if config.kwargs["BLOCK"] <= triton.next_power_of_2(cols)]
    return kept or configs[:1]


CONFIGS = [
    triton.Config({"BLOCK": block}, num_warps=warps, num_stages=stages)
    for block in (64, 128, 256, 8192)
    for warps in (2, 4)
    for stages in (1, 3)
]


def tuned(kernel):
    return triton.autotune(configs=CONFIGS, key=["cols"], prune_configs_by={"early_config_prune": too_wide})(kernel)


@tuned
@triton.jit
def largest_kernel(x_ptr, largest_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf")))
    tl.store(largest_ptr + row, tl.max(largest, 0))


@tuned
@triton.jit
def total_kernel(x_ptr, largest_ptr, total_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = tl.load(largest_ptr + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + row * cols + c, mask=c < cols, other=float("-inf")) - largest)
    tl.store(total_ptr + row, tl.sum(total, 0))


@tuned
@triton.jit
def quotient_kernel(x_ptr, largest_ptr, total_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest, total = tl.load(largest_ptr + row), tl.load(total_ptr + row)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + c, mask=c < cols)
        tl.store(out_ptr + row * cols + c, tl.exp(x - largest) / total, mask=c < cols)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        largest = torch.empty(rows, device=x.device, dtype=torch.float32)
        total = torch.empty_like(largest)
        out = torch.empty_like(x)
        largest_kernel[(rows,)](x, largest, cols)
        total_kernel[(rows,)](x, largest, total, cols)
        quotient_kernel[(rows,)](x, largest, total, out, cols)
        return out
