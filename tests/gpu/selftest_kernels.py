"""Compiles the kernels of `gpu_selftest` for an architecture; needs no GPU.

    python tests/gpu/selftest_kernels.py [90] > kernels.json

The document maps each kernel's name to what the kernel compiler answers (docs:
src/nereid/tracer/kernel_compiler.h).
"""

import base64
import json
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_one(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1.0, mask=i < n)


@triton.jit
def scale(x, out, n, factor, shift, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor + shift, mask=i < n)


@triton.jit
def write_at(out, index):
    tl.store(out + index, 7.0)


@triton.jit
def read_at(x, out, index):
    tl.store(out, tl.load(x + index))


@triton.jit
def spin(flag):
    while tl.load(flag, volatile=True) == 0:
        pass


@triton.jit
def matmul_host_descriptor(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([pm * BM, k]), b.load([k, pn * BN]), acc)
    c.store([pm * BM, pn * BN], acc.to(tl.float16))


@triton.jit
def matmul_device_descriptor(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    pm, pn = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([pm * BM, k]), b.load([k, pn * BN]), acc)
    c.store([pm * BM, pn * BN], acc.to(tl.float16))


@triton.jit
def matmul_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm, rn, rk = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16))


DESC = "tensordesc<fp16[64, 64]>"
ALIGNED = [["tt.divisibility", 16]]
KERNELS = {
    "add_one": (add_one, dict(x="*fp32", out="*fp32", n="i32", BLOCK="constexpr"), dict(BLOCK=1024), {}),
    "scale": (
        scale,
        dict(x="*fp32", out="*fp32", n="i32", factor="fp32", shift="fp64", BLOCK="constexpr"),
        dict(BLOCK=1024),
        {},
    ),
    "write_at": (write_at, dict(out="*fp32", index="i64"), {}, dict(num_warps=1)),
    "read_at": (read_at, dict(x="*fp32", out="*fp32", index="i64"), {}, dict(num_warps=1)),
    "spin": (spin, dict(flag="*i32"), {}, dict(num_warps=1)),
    "add_one_cluster": (
        add_one,
        dict(x="*fp32", out="*fp32", n="i32", BLOCK="constexpr"),
        dict(BLOCK=1024),
        dict(num_ctas=2),
    ),
    "matmul_host_descriptor": (
        matmul_host_descriptor,
        dict(
            a=DESC, b=DESC, c=DESC, M="i32", N="i32", K="i32", BM="constexpr", BN="constexpr", BK="constexpr"
        ),
        dict(BM=64, BN=64, BK=64),
        {},
    ),
    "matmul_device_descriptor": (
        matmul_device_descriptor,
        dict(
            a_ptr="*fp16",
            b_ptr="*fp16",
            c_ptr="*fp16",
            M="i32",
            N="i32",
            K="i32",
            BM="constexpr",
            BN="constexpr",
            BK="constexpr",
        ),
        dict(BM=64, BN=64, BK=64),
        {},
    ),
    "matmul_big_shared": (
        matmul_pointers,
        dict(
            a_ptr="*fp16",
            b_ptr="*fp16",
            c_ptr="*fp16",
            M="i32",
            N="i32",
            K="i32",
            BM="constexpr",
            BN="constexpr",
            BK="constexpr",
        ),
        dict(BM=128, BN=128, BK=64),
        dict(num_warps=8, num_stages=4),
    ),
}


def parameter_types(ttir):
    signature = re.search(r"tt\.func public @\w+\((.*?)\) attributes", ttir, re.S).group(1)
    return re.findall(r"%\w+: (.*?) (?:\{[^}]*\} )?loc\(", signature)


def compile_one(function, signature, constants, options, arch):
    attributes = {}
    if function is matmul_device_descriptor or function is matmul_pointers:
        attributes = {(i,): ALIGNED for i in range(6)}
    source = ASTSource(function, signature, constexprs=constants, attrs=attributes)
    kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    m = kernel.metadata
    return {
        "cubin": base64.b64encode(kernel.asm["cubin"]).decode(),
        "name": m.name,
        "shared": m.shared,
        "num_warps": m.num_warps,
        "num_ctas": m.num_ctas,
        "global_scratch": [m.global_scratch_size, m.global_scratch_align],
        "profile_scratch": [m.profile_scratch_size, m.profile_scratch_align],
        "cooperative": bool(m.launch_cooperative_grid),
        "pdl": bool(m.launch_pdl),
        "params": parameter_types(kernel.asm["ttir"]),
        "tensordesc_meta": m.tensordesc_meta or [],
    }


if __name__ == "__main__":
    arch = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    json.dump({name: compile_one(*spec, arch) for name, spec in KERNELS.items()}, sys.stdout)
