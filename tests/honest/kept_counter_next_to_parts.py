"""One kept tensor holds a counter, which the last program clears, and parts, which stay.

reference: ../tasks/total.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def total_kernel(x_ptr, ws_ptr, out_ptr, cols, n_rows, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    s = tl.sum(tl.load(x_ptr + row * cols + c, mask=c < cols, other=0.0), 0)
    part_ptr = (ws_ptr + 1).to(tl.pointer_type(tl.float32), bitcast=True)
    tl.store(part_ptr + row, s)
    tl.debug_barrier()
    if tl.atomic_add(ws_ptr, 1) == n_rows - 1:
        r = tl.arange(0, ROWS)
        tl.store(out_ptr, tl.sum(tl.load(part_ptr + r, mask=r < n_rows, other=0.0), 0))
        tl.debug_barrier()
        tl.atomic_xchg(ws_ptr, 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ws = None

    def forward(self, x):
        rows = x.shape[0]
        if self.ws is None:
            self.ws = torch.zeros(1 + rows, device=x.device, dtype=torch.int32)
        out = torch.empty(1, device=x.device, dtype=x.dtype)
        total_kernel[(rows,)](x, self.ws, out, x.shape[1], rows, ROWS=triton.next_power_of_2(rows), BLOCK=256)
        return out
