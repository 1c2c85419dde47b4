"""The TTIR executor against Triton's interpreter and ATen on the CPU, all in one run.

    .venv/bin/python bench/executor_bench.py [build/release/bin/nereid-ttir-run]

Kernels are those of tests/ttir/golden/kernels.py; the interpreter runs them from the same source. Times are
the least of several, in milliseconds; results are compared, too. Threads: all cores, for the executor as for
ATen.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "ttir" / "golden"
TOOL = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build" / "release" / "bin" / "nereid-ttir-run")


def executor(name, grid, tensors, scalars, output, sanitize, repeat):
    """Runs a golden kernel; gives (milliseconds, the output tensor)."""
    with tempfile.TemporaryDirectory() as folder:
        buffers = []
        for k, t in enumerate(tensors):
            path = f"{folder}/{k}.bin"
            t.numpy().tofile(path)
            buffers.append({"file": path, "name": f"tensor {k}", "element_bytes": 4, "written": True})
        buffers[output]["output"] = f"{folder}/out.bin"
        arguments = [{"buffer": k} for k in range(len(tensors))] + [
            {"scalar": v, "type": t} for v, t in scalars
        ]
        spec = {
            "ttir": str(GOLDEN / (name + ".ttir")),
            "grid": grid,
            "buffers": buffers,
            "arguments": arguments,
            "sanitize": sanitize,
            "repeat": repeat,
        }
        done = subprocess.run(
            [TOOL, "-"], input=json.dumps(spec), capture_output=True, text=True, check=False
        )
        report = json.loads(done.stdout)
        if not report.get("ok"):
            raise SystemExit(f"{name}: {done.stdout}")
        import numpy

        result = numpy.fromfile(f"{folder}/out.bin", dtype=numpy.float32)
        return 1e3 * report["seconds_min"], result


def least(f, repeat):
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return 1e3 * best


def main():
    os.environ["TRITON_INTERPRET"] = "1"
    sys.path.insert(0, str(GOLDEN))
    import torch
    import kernels

    torch.manual_seed(0)
    n = 1 << 20
    x, y, o = torch.randn(n), torch.randn(n), torch.empty(n)
    a, b, c = torch.randn(512, 512), torch.randn(512, 512), torch.zeros(512, 512)
    rows = torch.randn(4096, 4096)
    w, bias, out = torch.randn(4096), torch.randn(4096), torch.empty(4096, 4096)
    few = 64  # rows that the interpreter is given, its time scaled: it takes too long otherwise
    functional = torch.nn.functional
    cases = [
        (
            "add_relu, 2^20 floats",
            "add_relu",
            [n // 1024],
            [x, y, o],
            [(n, "i32")],
            2,
            lambda: kernels.add_relu[(n // 1024,)](x, y, o, n, B=1024),
            1.0,
            lambda: torch.relu(x + y),
        ),
        (
            "matmul 512^3, 64x64x32 tiles",
            "matmul",
            [8, 8],
            [a, b, c],
            [(512, "i32")] * 6,
            2,
            lambda: kernels.matmul[(8, 8)](a, b, c, 512, 512, 512, 512, 512, 512, BM=64, BN=64, BK=32),
            1.0,
            lambda: a @ b,
        ),
        (
            "softmax 4096x4096",
            "softmax",
            [4096],
            [rows, out],
            [(4096, "i32")],
            1,
            lambda: kernels.softmax[(few,)](rows, out, 4096, B=4096),
            4096 / few,
            lambda: torch.softmax(rows, 1),
        ),
        (
            "layer norm 4096x4096",
            "layer_norm",
            [4096],
            [rows, w, bias, out],
            [(4096, "i32"), (1e-5, "f32")],
            3,
            lambda: kernels.layer_norm[(few,)](rows, w, bias, out, 4096, 1e-5, B=4096),
            4096 / few,
            lambda: functional.layer_norm(rows, (4096,), w, bias),
        ),
    ]
    print(
        "| kernel | interpreter ms | ATen ms | executor ms | sanitizer on ms | times interpreter off / on |"
        " times ATen's time |"
    )
    print("|---|---|---|---|---|---|---|")
    for title, name, grid, tensors, scalars, output, interpreted, scale, aten in cases:
        off, got = executor(name, grid, tensors, scalars, output, False, 20)
        on, also = executor(name, grid, tensors, scalars, output, True, 10)
        native = least(aten, 20)
        want = aten().flatten().numpy()
        for result in (got, also):
            error = abs(result - want).max()
            if not error < 1e-3:
                raise SystemExit(f"{title}: differs from ATen by {error}")
        slow = scale * least(interpreted, 2)
        print(
            f"| {title} | {slow:.1f} | {native:.2f} | {off:.2f} | {on:.2f} | {slow / off:.0f} /"
            f" {slow / on:.0f} | {off / native:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
