"""One program hands rows to another through a slot of memory, with a flag for full and empty.

reference: ../tasks/column_sums.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_kernel(x_ptr, full_ptr, slot_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    live = c < cols
    if tl.program_id(0) == 0:
        for row in range(rows):
            x = tl.load(x_ptr + row * cols + c, mask=live, other=0.0)
            while tl.atomic_add(full_ptr, 0, sem="acquire") == 1:
                pass
            tl.store(slot_ptr + c, x)
            tl.debug_barrier()
            tl.atomic_xchg(full_ptr, 1, sem="release")
    else:
        acc = tl.zeros((BLOCK,), tl.float32)
        for row in range(rows):
            while tl.atomic_add(full_ptr, 0, sem="acquire") == 0:
                pass
            acc += tl.load(slot_ptr + c)
            tl.debug_barrier()
            tl.atomic_xchg(full_ptr, 0, sem="release")
        tl.store(out_ptr + c, acc, mask=live)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        full = torch.zeros(1, device=x.device, dtype=torch.int32)
        slot = torch.empty(256, device=x.device, dtype=torch.float32)
        out = torch.empty(cols, device=x.device, dtype=x.dtype)
        column_kernel[(2,)](x, full, slot, out, rows, cols, BLOCK=256)
        return out
