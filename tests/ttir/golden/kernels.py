"""Kernels whose TTIR is in this folder: `python kernels.py` writes it again (no GPU needed)."""

import pathlib
import sys

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend


@triton.jit
def add_relu(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=m) + tl.load(y + i, mask=m), 0.0), mask=m)


@triton.jit
def add_unmasked(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def matmul(a, b, c, M, N, K, sam, sbk, scm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a + rm[:, None] * sam + rk[None, :]
    bp = b + rk[:, None] * sbk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        av = tl.load(ap, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0.0)
        bv = tl.load(bp, mask=(rk[:, None] < K - k * BK) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(av, bv, acc, input_precision="ieee")
        ap += BK
        bp += BK * sbk
    tl.store(c + rm[:, None] * scm + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf"))
    v = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * n + c, v / tl.sum(v, 0), mask=c < n)


@triton.jit
def layer_norm(x, w, b, o, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    y = d * rstd * tl.load(w + c, mask=m) + tl.load(b + c, mask=m)
    tl.store(o + r * n + c, y, mask=m)


@triton.jit
def shared_store(o):
    tl.store(o + tl.arange(0, 16), tl.program_id(0).to(tl.float32))


@triton.jit
def neighbour_read(x, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i + 1))


@triton.jit
def atomic_sum(x, o, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o, tl.sum(tl.load(x + i), 0))


@triton.jit
def last_arriver(x, partial, counter, o, n, B: tl.constexpr, P: tl.constexpr):
    p = tl.program_id(0)
    tl.store(partial + p, tl.sum(tl.load(x + p * B + tl.arange(0, B)), 0))
    if tl.atomic_add(counter, 1) == n - 1:
        i = tl.arange(0, P)
        tl.store(o, tl.sum(tl.load(partial + i, mask=i < n, other=0.0), 0))


@triton.jit
def early_reader(x, partial, counter, o, n, B: tl.constexpr, P: tl.constexpr):
    p = tl.program_id(0)
    tl.store(partial + p, tl.sum(tl.load(x + p * B + tl.arange(0, B)), 0))
    if tl.atomic_add(counter, 1, sem="relaxed") == n - 1:
        i = tl.arange(0, P)
        tl.store(o, tl.sum(tl.load(partial + i, mask=i < n, other=0.0), 0))


@triton.jit
def spin_lock(x, lock, o, B: tl.constexpr):
    s = tl.sum(tl.load(x + tl.program_id(0) * B + tl.arange(0, B)), 0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(o, tl.load(o) + s)
    tl.atomic_xchg(lock, 0)


@triton.jit
def wait_for_next(flags, o):
    # Every program but the last waits for the one after it.
    p = tl.program_id(0)
    n = tl.num_programs(0)
    if p < n - 1:
        while tl.atomic_add(flags + p + 1, 0) == 0:
            pass
        tl.store(o + p, tl.load(o + p + 1) + 1)
    else:
        tl.store(o + p, 1)
    tl.atomic_xchg(flags + p, 1)


@triton.jit
def divide(x, o, d):
    i = tl.arange(0, 16)
    tl.store(o + i, tl.load(x + i) // d)


@triton.jit
def asserting(x):
    v = tl.load(x + tl.arange(0, 16))
    tl.device_assert(v > 0, "values must be positive")


@triton.jit
def overflow(x, o, stride):
    i = tl.arange(0, 16)
    tl.store(o + i, tl.load(x + (i + 1) * stride))


@triton.jit
def scan_argmax(x, o, a, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o + i, tl.cumsum(v, 0))
    tl.store(a, tl.argmax(v, 0))


@triton.jit
def sort_rows(x, o, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o + at, tl.sort(tl.load(x + at), 1))


P = "*fp32"
CASES = {
    "add_relu": (add_relu, dict(x=P, y=P, o=P, n="i32"), dict(B=1024)),
    "add_unmasked": (add_unmasked, dict(x=P, y=P, o=P, n="i32"), dict(B=64)),
    "matmul": (
        matmul,
        dict(a=P, b=P, c=P, M="i32", N="i32", K="i32", sam="i32", sbk="i32", scm="i32"),
        dict(BM=64, BN=64, BK=32),
    ),
    "softmax": (softmax, dict(x=P, o=P, n="i32"), dict(B=4096)),
    "layer_norm": (layer_norm, dict(x=P, w=P, b=P, o=P, n="i32", eps="fp32"), dict(B=4096)),
    "shared_store": (shared_store, dict(o=P), {}),
    "neighbour_read": (neighbour_read, dict(x=P), dict(B=16)),
    "atomic_sum": (atomic_sum, dict(x=P, o=P), dict(B=64)),
    "last_arriver": (last_arriver, dict(x=P, partial=P, counter="*i32", o=P, n="i32"), dict(B=64, P=64)),
    "early_reader": (early_reader, dict(x=P, partial=P, counter="*i32", o=P, n="i32"), dict(B=64, P=64)),
    "spin_lock": (spin_lock, dict(x=P, lock="*i32", o=P), dict(B=64)),
    "wait_for_next": (wait_for_next, dict(flags="*i32", o="*i32"), {}),
    "divide": (divide, dict(x="*i32", o="*i32", d="i32"), {}),
    "asserting": (asserting, dict(x="*i32"), {}),
    "overflow": (overflow, dict(x=P, o=P, stride="i32"), {}),
    "scan_argmax": (scan_argmax, dict(x=P, o=P, a="*i32"), dict(B=256)),
    "sort_rows": (sort_rows, dict(x=P, o=P), dict(M=4, N=64)),
}


def ttir(fn, signature, constexprs):
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({"debug": fn is asserting, "sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    signature = {**signature, **{name: "constexpr" for name in constexprs}}
    source = ASTSource(fn=fn, signature=signature, constexprs=constexprs)
    stages = {}
    backend.add_stages(stages, options, source.language)
    module = source.make_ir(
        target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
    )
    return str(stages["ttir"](module, {}))


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent.resolve()
    for name, case in CASES.items():
        text = (
            ttir(*case)
            .replace(str(here) + "/", "")
            .replace(str(pathlib.Path(triton.__file__).parent.parent), "")
        )
        (here / (name + ".ttir")).write_text(text)
    print(len(CASES), "kernels", file=sys.stderr)
