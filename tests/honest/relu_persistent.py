"""A persistent kernel: as many programs as there are multiprocessors, each walking over tiles.

reference: ../tasks/relu.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_persistent(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tiles = tl.cdiv(n, BLOCK)
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        offsets = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + offsets, tl.maximum(x, 0.0), mask=offsets < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.programs = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count

    def forward(self, x):
        out = torch.empty_like(x)
        relu_persistent[(min(self.programs, triton.cdiv(x.numel(), 512)),)](x, out, x.numel(), BLOCK=512)
        return out
