"""Every lane raises a flag of its own, and the reader waits for the first alone.

reference: ../tasks/column_sums.py
verdict: Unsafe
rule: missing-barrier
why: the first lane's release covers the first lane's store.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_kernel(x_ptr, flag_ptr, part_ptr, out_ptr, rows, cols, EACH: tl.constexpr, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    live = c < cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for r in range(EACH):
        row = part * EACH + r
        acc += tl.load(x_ptr + row * cols + c, mask=live & (row < rows), other=0.0)
    if part == 0:
        for other in range(1, tl.num_programs(0)):
            while tl.atomic_add(flag_ptr + other * BLOCK, 0, sem="acquire") == 0:
                pass
            acc += tl.load(part_ptr + other * BLOCK + c)
        tl.store(out_ptr + c, acc, mask=live)
    else:
        tl.store(part_ptr + part * BLOCK + c, acc)
        tl.atomic_xchg(flag_ptr + part * BLOCK + c, 1, sem="release")


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = triton.cdiv(rows, 16)
        flags = torch.zeros((parts, 256), device=x.device, dtype=torch.int32)
        part = torch.empty((parts, 256), device=x.device, dtype=torch.float32)
        out = torch.empty(cols, device=x.device, dtype=x.dtype)
        column_kernel[(parts,)](x, flags, part, out, rows, cols, EACH=16, BLOCK=256)
        return out
