"""The segment of each row by repeat_interleave, copied by a kernel.

reference: ../tasks/segments_of_lengths.py
verdict: Disallowed
rule: aten-compute or aten-share
why: it counts, and is the only way to the output.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, lengths):
        segments = torch.repeat_interleave(lengths, output_size=512)
        out = torch.empty_like(segments)
        copy_kernel[(2,)](segments, out, 512, BLOCK=256)
        return out
