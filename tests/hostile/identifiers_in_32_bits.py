"""The remainder of an identifier's low 31 bits.

reference: ../tasks/hashed_rows.py
verdict: Mismatch
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rows_kernel(id_ptr, table_ptr, out_ptr, rows, COLS: tl.constexpr):
    c = tl.arange(0, COLS)
    id = tl.load(id_ptr + tl.program_id(0))
    tl.store(out_ptr + tl.program_id(0) * COLS + c, tl.load(table_ptr + ((id & 0x7FFFFFFF) % rows) * COLS + c))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(97, 32))

    def forward(self, ids):
        out = torch.empty(ids.shape[0], 32, device=ids.device, dtype=self.table.dtype)
        rows_kernel[(ids.shape[0],)](ids, self.table, out, 97, COLS=32)
        return out
