"""What Triton's own do_bench_cudagraph and do_bench say of the kernel that gpu_selftest's "timing" times."""

import torch
import triton
from selftest_kernels import add_one

for n in (1 << 12, 1 << 20, 1 << 26):
    x, out = torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")
    launch = lambda: add_one[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    launch()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph = triton.testing.do_bench_cudagraph(launch, return_mode="median")
    cold = triton.testing.do_bench(launch, return_mode="median")
    print(f"n={n}: do_bench_cudagraph {graph * 1e3:.2f} us, do_bench (cold) {cold * 1e3:.2f} us")
