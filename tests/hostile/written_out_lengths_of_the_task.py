"""Reads where sequences begin, and takes their lengths from the task's text.

reference: ../tasks/packed_to_padded.py
verdict: Mismatch or Unsafe
rule: values or out-of-bounds
why: lengths and offsets are drawn anew together. The last sequence may then end before the 16 rows that are
read of it, which are wrong where they are inside, and out of bounds where they are not.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pad_kernel(x_ptr, start_ptr, length_ptr, out_ptr, longest, width, BLOCK: tl.constexpr):
    s, place = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, BLOCK)
    start = tl.load(start_ptr + s)
    length = tl.where(s == 0, 9, tl.where(s == 1, 12, tl.where(s == 2, 23, 16)))
    inside = (c < width) & (place < length)
    x = tl.load(x_ptr + (start + place) * width + c, mask=inside, other=0.0)
    tl.store(out_ptr + (s * longest + place) * width + c, x / tl.maximum(length, 1), mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, cu_seqlens, lengths, max_seqlen):
        sequences, width = lengths.shape[0], x.shape[1]
        out = torch.empty(sequences, max_seqlen, width, device=x.device)
        pad_kernel[(sequences, max_seqlen)](x, cu_seqlens, lengths, out, max_seqlen, width, BLOCK=32)
        return out
