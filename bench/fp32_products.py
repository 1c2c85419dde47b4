"""What fp32 matrix products cost on tensor cores when each factor is split into narrower parts, against
cuBLAS's fp32.

    python3 bench/fp32_products.py [N]     needs a GPU of sm_90

A factor is written once as parts: two of fp16 (the second times 2^11, what the first left), two or three of
bf16. The product of the parts is summed from the smallest terms to the largest, and the largest in segments
of K, each from zero: tensor cores cut off where they add, so a long sum in them loses more than the split
does. Notes: bench/cuda.md.
"""

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def split(x_ptr, hi_ptr, mid_ptr, lo_ptr, n, up, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + i, mask=i < n)
    for out_ptr in tl.static_range(PARTS):
        target = hi_ptr if out_ptr == 0 else mid_ptr if out_ptr == 1 else lo_ptr
        part = left.to(hi_ptr.dtype.element_ty)
        left = (left - part.to(tl.float32)) * up
        tl.store(target + i, part, mask=i < n)


@triton.jit
def tile_of(pid, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    cols = tl.cdiv(N, BN)
    first = pid // (GROUP * cols) * GROUP
    size = tl.minimum(tl.cdiv(M, BM) - first, GROUP)
    return first + (pid % (GROUP * cols)) % size, (pid % (GROUP * cols)) // size


@triton.jit
def add_product(a, b, acc, m, n, start, stop, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    for k in range(start, stop, BK):
        acc = tl.dot(a.load([m * BM, k]), b.load([k, n * BN]), acc)
    return acc


@triton.jit
def product(
    a0,
    a1,
    a2,
    b0,
    b1,
    b2,
    c_ptr,
    M,
    N,
    K,
    down,
    PARTS: tl.constexpr,
    SEGMENT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    m, n = tile_of(tl.program_id(0), M, N, BM, BN, 8)
    acc = tl.zeros((BM, BN), tl.float32)
    if PARTS == 3:
        acc = add_product(a2, b0, acc, m, n, 0, K, BM, BN, BK)
        acc = add_product(a1, b1, acc, m, n, 0, K, BM, BN, BK)
        acc = add_product(a0, b2, acc, m, n, 0, K, BM, BN, BK)
    acc = add_product(a1, b0, acc, m, n, 0, K, BM, BN, BK)
    acc = add_product(a0, b1, acc, m, n, 0, K, BM, BN, BK)
    acc *= down
    for start in range(0, K, SEGMENT):
        part = tl.zeros((BM, BN), tl.float32)
        acc += add_product(a0, b0, part, m, n, start, tl.minimum(start + SEGMENT, K), BM, BN, BK)
    rows, cols = m * BM + tl.arange(0, BM)[:, None], n * BN + tl.arange(0, BN)[None, :]
    tl.store(c_ptr + rows.to(tl.int64) * N + cols, acc, mask=(rows < M) & (cols < N))


def parts_of(x, dtype, count, up):
    parts = [torch.empty_like(x, dtype=dtype) for _ in range(count)]
    given = parts + [parts[-1]] * (3 - count)
    split[(triton.cdiv(x.numel(), 2048),)](x, *given, x.numel(), up, PARTS=count, BLOCK=2048, num_warps=8)
    return given


def multiply(a, b, dtype, count, segment, tile, warps, stages):
    (M, K), N = a.shape, b.shape[1]
    BM, BN, BK = tile
    c = torch.empty(M, N, device=a.device)
    up = 2048.0 if dtype == torch.float16 else 1.0
    factors = [TensorDescriptor.from_tensor(t, [BM, BK]) for t in parts_of(a, dtype, count, up)]
    factors += [TensorDescriptor.from_tensor(t, [BK, BN]) for t in parts_of(b, dtype, count, up)]
    product[(triton.cdiv(M, BM) * triton.cdiv(N, BN),)](
        *factors,
        c,
        M,
        N,
        K,
        1 / up,
        PARTS=count,
        SEGMENT=segment,
        BM=BM,
        BN=BN,
        BK=BK,
        num_warps=warps,
        num_stages=stages,
    )
    return c


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    torch.manual_seed(0)
    a, b = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda")
    truth = a.double() @ b.double()

    def report(name, run):
        error = (run() - truth).abs().max().item()
        ms = triton.testing.do_bench_cudagraph(run, rep=60)
        print(
            f"{name:44s} {ms:7.3f} ms {2 * n**3 / ms / 1e9:6.1f} TFLOP/s  largest error {error:.2e}",
            flush=True,
        )

    report("cuBLAS fp32", lambda: torch.mm(a, b))
    for dtype, count in ((torch.float16, 2), (torch.bfloat16, 2), (torch.bfloat16, 3)):
        for tile, warps, stages in (((128, 256, 64), 8, 3), ((128, 128, 64), 8, 4), ((128, 128, 64), 4, 4)):
            for segment in (256, 512, n):
                name = (
                    f"{str(dtype)[6:]} in {count}, {'x'.join(map(str, tile))}, {warps} warps, K by {segment}"
                )
                report(name, lambda: multiply(a, b, dtype, count, segment, tile, warps, stages))


if __name__ == "__main__":
    main()
