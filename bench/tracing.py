"""How long a warmed tracer takes for a file, fork and JSON included, without the sandbox's isolation:
bench/tracing.py [FILE REFERENCE]

Wall time, median of 30, and the child's CPU time. The process has moved its memory into huge pages before, as
the product's has after a second or two. The bar: 30 ms of wall time for a one-kernel candidate on an idle
machine.
"""

import gc
import os
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/tracer"), str(ROOT / "python")]

HUGE_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # as the product starts its zygote
if __name__ == "__main__" and not HUGE_HEAP.items() <= os.environ.items():
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **HUGE_HEAP})

from nereid._worker.jail import Memory  # noqa: E402

LIBRARY = ROOT / "build/release/bin/libnereid_jail.so"
memory = Memory(str(LIBRARY))  # before the imports that fill it

from forked import References, forked, request, tracer  # noqa: E402
from verdicts import CANDIDATE, REFERENCE  # noqa: E402

DEFAULT = [
    ("tests/tracer/modules/softmax_candidate.py",) * 2,
    ("tests/tracer/modules/gelu_linear_candidate.py", "tests/tracer/modules/gelu_linear.py"),
]


def main():
    if len(sys.argv) > 2:
        measure([tuple(sys.argv[1:3])])
        return
    with tempfile.TemporaryDirectory() as name:
        candidate, reference = pathlib.Path(name, "add_relu.py"), pathlib.Path(name, "reference.py")
        candidate.write_text(CANDIDATE.format(i=0, block=256))
        reference.write_text(REFERENCE)
        measure(
            [(str(candidate), str(reference))]
            + [(str(ROOT / file), str(ROOT / reference)) for file, reference in DEFAULT]
        )


def measure(pairs):
    tracer.warm()
    gc.collect()
    gc.freeze()
    compaction = memory.compaction(memory.pieces_used_by(tracer.warm_up))
    while not compaction.done:
        compaction.step()
    references = References()
    for file, reference in pairs:
        asked = request(file, "ModelNew", references.inputs(reference))
        wall_times, cpus = [], []
        for _ in range(30):
            before = os.times()
            answer, wall = forked(asked)
            after = os.times()
            wall_times.append(wall * 1e3)
            cpus.append(
                (after.children_user + after.children_system - before.children_user - before.children_system)
                * 1e3
            )
            assert "trace" in answer, answer
        print(
            f"{pathlib.Path(file).name}: wall {statistics.median(wall_times):.1f} ms (least"
            f" {min(wall_times):.1f}), CPU {statistics.mean(cpus):.1f} ms; load {os.getloadavg()[0]:.0f}"
        )


if __name__ == "__main__":
    main()
