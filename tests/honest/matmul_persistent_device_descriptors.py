"""As many programs as processors, each of which walks over tiles in groups, by descriptors made on the device.

reference: ../tasks/matmul_odd_wide.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tile_of(tile, rows, cols, GROUP: tl.constexpr):
    width = GROUP * cols
    group = tile // width
    first = group * GROUP
    size = min(rows - first, GROUP)
    return first + tile % width % size, tile % width // size


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 4}, num_warps=4, num_stages=3)
        for m, n, k in ((32, 32, 32), (16, 64, 32))
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    rows, cols = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), rows * cols, PROGRAMS, flatten=True):
        m, n = tile_of(tile, rows, cols, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a.load([m * BLOCK_M, k]), b.load([k, n * BLOCK_N]), acc, input_precision="ieee")
        c.store([m * BLOCK_M, n * BLOCK_N], acc)


def workspace(size, alignment, stream):
    return torch.empty(size, device="cuda", dtype=torch.int8)


class ModelNew(nn.Module):
    def forward(self, a, b):
        triton.set_allocator(workspace)
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        programs = torch.cuda.get_device_properties(a.device).multi_processor_count
        grid = lambda meta: (min(programs, triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"])),)
        matmul_kernel[grid](a, b, c, M, N, K, PROGRAMS=programs)
        return c
