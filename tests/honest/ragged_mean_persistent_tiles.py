"""A persistent kernel walks over all tiles, of which the host counts how many there are.

reference: ../tasks/ragged_mean.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_kernel(x_ptr, tile_ptr, out_ptr, length_ptr, longest, width, tiles, TILE: tl.constexpr, BLOCK: tl.constexpr):
    for t in range(tl.program_id(0), tiles, tl.num_programs(0)):
        i, first, rows = tl.load(tile_ptr + 3 * t), tl.load(tile_ptr + 3 * t + 1), tl.load(tile_ptr + 3 * t + 2)
        r, c = first + tl.arange(0, TILE), tl.arange(0, BLOCK)
        at = (i * longest + r)[:, None] * width + c[None, :]
        x = tl.load(x_ptr + at, mask=(r < first + rows)[:, None] & (c < width)[None, :], other=0.0)
        part = tl.sum(x, 0) / tl.load(length_ptr + i).to(tl.float32)
        tl.atomic_add(out_ptr + i * width + c, part, mask=c < width)


class ModelNew(nn.Module):
    def forward(self, x, counts):
        tiles = [[i, r, min(16, n - r)] for i, n in enumerate(counts.tolist()) for r in range(0, n, 16)]
        table = torch.tensor(tiles, dtype=torch.int64, device=x.device)
        out = torch.zeros(x.shape[0], x.shape[2], device=x.device)
        part_kernel[(min(4, len(tiles)),)](x, table, out, counts, x.shape[1], x.shape[2], len(tiles), TILE=16, BLOCK=64)
        return out
