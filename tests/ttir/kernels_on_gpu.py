"""Every kernel that the candidates in tests/honest and tests/packages launch: the executor against a GPU,
launch by launch.

    .venv/bin/python tests/ttir/kernels_on_gpu.py --save traces.json.gz               # needs no GPU: traces,
                                                                                      and keeps them
    python3 tests/ttir/kernels_on_gpu.py --traces traces.json.gz --tool nereid-ttir-run   # where the GPU is
    .venv/bin/python tests/ttir/kernels_on_gpu.py --device cpu [WORD...]               # the executor against
                                                                                       itself

A trace's calls are replayed by PyTorch on the CPU. Each launch is run by the executor and, from the same
bytes, by the GPU: Triton compiles the TTIR and launches it. Every buffer must agree: to the bit where a
kernel only moves numbers and adds or multiplies them one by one, else within what TOLERANCES says; the table
names the largest difference of each kernel. The replay continues with the executor's results. With
`--device cpu` the other side is the executor again, on other threads and without its sanitizer. Exit code 1
where anything differs.
"""

import argparse
import gzip
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path[:0] = [str(HERE), str(TESTS / "tracer")]

# What a kernel's text holds, and how far results may then be apart, as a part of the largest of the buffer's
# numbers (besides two ulps of the buffer's type). The first that applies.
TOLERANCES = [
    ("products of tf32", r"tt\.dot .*f32>.*inputPrecision = tf32 ", 2.0**-9),
    ("products of float8", r"tt\.dot .*f8E", 2.0**-7),
    ("products and sums", r"tt\.dot|tt\.dot_scaled|\"tt\.(reduce|scan)\"|fadd|descriptor_reduce", 2.0**-17),
    ("inline assembly", r"elementwise_inline_asm", 2.0**-10),
    ("functions", r"math\.|extern_elementwise|arith\.divf", 2.0**-19),
    ("steps that may be fused", r"arith\.mulf", 2.0**-22),
    ("exact", r"", 0.0),
]


def tolerance_of(ttir):
    return next((name, part) for name, pattern, part in TOLERANCES if re.search(pattern, ttir))


def reference_of(path):
    named = re.search(r"^reference: (\S+)$", path.read_text(), re.M)
    return (path.parent / named.group(1)).resolve() if named else None


def trace_all(words):
    """[name, the reference's trace, the candidate's]; and what does not trace."""
    from forked import References, forked, request, word

    references, traced, left = References(), [], []
    for folder in ("honest", "packages"):
        for path in sorted((TESTS / folder).glob("*.py")):
            name = f"{folder}/{path.stem}"
            reference = reference_of(path)
            if reference is None or not all(w in name for w in words):
                continue
            answer, _ = references.answer(reference)
            candidate = answer
            if "trace" in answer:
                candidate, _ = forked(request(path, "ModelNew", references.inputs(reference)))
            if "trace" in candidate:
                traced.append([name, answer["trace"], candidate["trace"]])
            else:
                left.append(f"{name}: {word(candidate)[:200]}")
    return traced, left


class Executor:
    """A running nereid-ttir-run: a launch goes in, its buffers come back."""

    def __init__(self, tool, folder):
        self.process = subprocess.Popen(
            [tool, "--lines"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.folder = pathlib.Path(folder)

    def run(self, launch, **options):
        """`options`: threads, sanitize. The buffers' bytes afterwards."""
        (self.folder / "kernel.ttir").write_text(launch.kernel["ttir"])
        buffers = []
        for k, raw in enumerate(launch.buffers):
            path = self.folder / f"{k}.bin"
            path.write_bytes(raw)
            buffers.append({"file": str(path), "output": True, "written": True})
        spec = {
            "ttir": str(self.folder / "kernel.ttir"),
            "grid": launch.grid,
            "buffers": buffers,
            "arguments": launch.executor_arguments(),
            **options,
        }
        self.process.stdin.write(json.dumps(spec) + "\n")
        self.process.stdin.flush()
        report = json.loads(self.process.stdout.readline())
        if not report.get("ok"):
            raise RuntimeError(
                "executor:"
                f" {report.get('error') or [f['sentence'] for f in report['findings']] or 'timed out'}"
            )
        return [(self.folder / f"{k}.bin").read_bytes() for k in range(len(buffers))]


class Launch:
    """One launch with the bytes of the storages that it can touch. arguments: ("p", buffer, offset), ("s",
    value), ("d", ...)."""

    def __init__(self, kernel, alternative, values, memory, itemsize):
        self.kernel, self.grid = kernel, alternative["grid"]
        self.storages, self.dtypes, self.arguments = [], [], []

        def place(value, offset):
            described = values[value]
            if described["s"] not in self.storages:
                self.storages.append(described["s"])
                self.dtypes.append(described["t"])
            return (
                self.storages.index(described["s"]),
                described.get("o", 0) * itemsize[described["t"]] + offset,
            )

        for argument in alternative["args"]:
            if "p" in argument:
                self.arguments.append(
                    ("p", -1, 0) if argument["p"] < 0 else ("p", *place(argument["p"], argument.get("o", 0)))
                )
            elif "desc" in argument:
                self.arguments.append(("d", *place(argument["desc"], 0), argument))
            else:
                self.arguments.append(("s", argument["i"] if "i" in argument else float(argument["x"])))
        self.buffers = [bytes(memory(s)) for s in self.storages]

    def types(self):
        head = self.kernel["ttir"].split("tt.func public", 1)[1].split("attributes", 1)[0]
        return [kind.strip() for kind in re.findall(r"%[\w]+: (.*?)(?= \{| loc\(|, %|\))", head)]

    def executor_arguments(self):
        out, types, at = [], self.types(), 0
        for kind, *rest in self.arguments:
            if kind == "p":
                out.append({"null": True} if rest[0] < 0 else {"buffer": rest[0], "offset": rest[1]})
            elif kind == "d":
                d = rest[2]
                out.append(
                    {
                        "descriptor": {
                            "buffer": rest[0],
                            "offset": rest[1],
                            "shape": d["shape"],
                            "strides": d["strides"],
                            "nan_padding": d.get("nan", False),
                        }
                    }
                )
                at += 2 * len(d["shape"])
            else:
                value = rest[0]
                out.append(
                    {
                        "scalar": (
                            value if not isinstance(value, float) or math.isfinite(value) else str(value)
                        ),
                        "type": types[at],
                    }
                )
            at += 1
        return out


class Gpu:
    OPTIONS = (
        "num_warps",
        "num_stages",
        "num_ctas",
        "enable_fp_fusion",
        "maxnreg",
        "launch_cooperative_grid",
        "launch_pdl",
    )

    def __init__(self, folder):
        import torch

        self.torch, self.folder, self.kernels = torch, pathlib.Path(folder), {}
        import triton

        triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )

    def run(self, launch):
        import triton
        from triton.backends.compiler import GPUTarget

        if any(kind == "d" for kind, *_ in launch.arguments):
            raise NotImplementedError("a tensor descriptor made on the host")
        key = launch.kernel["hash"]
        if key not in self.kernels:
            path = self.folder / f"{len(self.kernels)}.ttir"
            path.write_text(launch.kernel["ttir"])
            major, minor = self.torch.cuda.get_device_capability()
            options = {k: v for k, v in launch.kernel["options"].items() if k in self.OPTIONS}
            self.kernels[key] = triton.compile(
                str(path), target=GPUTarget("cuda", 10 * major + minor, 32), options=options
            )
        there = [self.torch.frombuffer(bytearray(raw),
                 dtype=self.torch.uint8).cuda() if raw else self.torch.empty(0, dtype=self.torch.uint8,
                 device="cuda")
                 for raw in launch.buffers]  # fmt: skip
        arguments = []
        for kind, *rest in launch.arguments:
            arguments.append(
                rest[0] if kind == "s" else 0 if rest[0] < 0 else there[rest[0]].data_ptr() + rest[1]
            )
        self.kernels[key][tuple(launch.grid)](*arguments)
        self.torch.cuda.synchronize()
        return [bytes(t.cpu().numpy()) for t in there]


class Comparison:
    """Which kernels were compared, how far apart their buffers were at most, and what was wrong."""

    def __init__(self):
        self.rows, self.wrong, self.left = {}, [], []

    def add(self, name, launch, got, want):
        import torch
        from differential import ulps_between
        from replay import DTYPES

        rule, part = tolerance_of(launch.kernel["ttir"])
        row = self.rows.setdefault(
            (name, launch.kernel["name"]),
            {"rule": rule, "launches": 0, "equal": True, "ulps": 0.0, "part": 0.0},
        )
        row["launches"] += 1
        for a, b, t in zip(got, want, launch.dtypes):
            if a == b:
                continue
            dtype = DTYPES[t]
            size = dtype.itemsize
            x, y = (
                torch.frombuffer(bytearray(raw[: len(raw) // size * size]), dtype=dtype) for raw in (a, b)
            )
            row["equal"] = False
            if not dtype.is_floating_point:
                self.wrong.append(
                    f"{name} {launch.kernel['name']}: {int((x != y).sum())} of {x.numel()} integers differ"
                )
                continue
            distance, largest = ulps_between(x, y), y.double().abs()
            largest = (
                max(largest[largest.isfinite()].max().item(), 1e-30) if largest.isfinite().any() else 1.0
            )
            apart = (x.double() - y.double()).abs().nan_to_num(nan=0.0) / largest
            bad = (distance > (0 if part == 0 else 2)) & ~(apart <= part) | distance.isinf()
            row["ulps"], row["part"] = (
                max(row["ulps"], distance.max().item()),
                max(row["part"], apart.max().item()),
            )
            if bad.any():
                at = int(bad.int().argmax())
                self.wrong.append(
                    f"{name} {launch.kernel['name']} ({rule}): {int(bad.sum())} of {x.numel()} numbers;"
                    f" number {at} is {x[at].item()!r} instead of {y[at].item()!r}"
                )

    def print(self):
        print(
            f"{'kernel':70} {'launches':>8} {'rule':24} {'bit-equal':>9} {'most ulps':>10}"
            f" {'of the largest':>14}"
        )
        for (name, kernel), row in self.rows.items():
            print(
                f"{name + ' ' + kernel:70} {row['launches']:8} {row['rule']:24}"
                f" {'yes' if row['equal'] else 'no':>9} {row['ulps']:10.0f} {row['part']:14.2g}"
            )
        for line in self.wrong:
            print("DIFFERS", line)
        for line in self.left:
            print("not compared:", line)
        equal = sum(row["equal"] for row in self.rows.values())
        print(
            f"{len(self.rows)} kernels compared, {equal} to the bit; {len(self.wrong)} buffers differ,"
            f" {len(self.left)} not compared"
        )
        return 1 if self.wrong or not self.rows else 0


def replay_of(base):
    class LaunchReplay(base):
        """Replays a trace; `launcher(launch)` runs a launch and gives the buffers' bytes."""

        def __init__(self, trace, launcher, given=()):
            super().__init__(trace)
            self.launcher, self.given, self.inputs = launcher, list(given), []

        def _step(self, step):
            if "launch" not in step:
                return super()._step(step)
            import torch
            from replay import DTYPES

            alternative = step["launch"][0]
            for call in alternative.get("before", []):
                super()._step(call)
            itemsize = {t: dtype.itemsize for t, dtype in DTYPES.items()}
            launch = Launch(
                self.trace["kernels"][alternative["kernel"]],
                alternative,
                self.trace["values"],
                lambda s: self.bytes_of(s).numpy(),
                itemsize,
            )
            for storage, raw in zip(launch.storages, self.launcher(launch)):
                if raw:
                    self.bytes_of(storage).copy_(torch.frombuffer(bytearray(raw), dtype=torch.uint8))

        def bytes_of(self, storage):
            import torch

            known = self.memory[storage]
            return torch.empty(0, dtype=torch.uint8).set_(known, 0, (known.nbytes(),), (1,))

        def run(self, seed_of):
            """As the base's, but for a candidate's inputs, which are given; the inputs of each call are
            kept."""
            import torch
            from replay import storage_of

            with torch.no_grad():
                for phase in self.trace["phases"]:
                    torch.default_generator.manual_seed(seed_of(phase["phase"], phase["call"]))
                    if phase["phase"] == "make_inputs" and self.given:
                        for id, tensor in zip(tensors_in(phase["inputs"]), self.given.pop(0)):
                            value = self.trace["values"][id]
                            self.memory.setdefault(
                                value["s"],
                                torch.zeros(
                                    self.trace["storages"][value["s"]]["bytes"], dtype=torch.uint8
                                ).untyped_storage(),
                            )
                            self._view(value).detach().copy_(tensor)
                            if self.trace["storages"][value["s"]].get("pinned"):
                                self.memory[value["s"]].copy_(storage_of(self.trace["storages"][value["s"]]))
                    for step in phase["steps"]:
                        self._step(step)
                    self.tensors = {}
                    if phase["phase"] == "make_inputs":
                        self.inputs.append(
                            [
                                self._view(self.trace["values"][id]).detach().clone()
                                for id in tensors_in(phase["inputs"])
                            ]
                        )

    return LaunchReplay


def tensors_in(arg):
    if isinstance(arg, list):
        return [id for item in arg for id in tensors_in(item)]
    if isinstance(arg, dict):
        if "v" in arg:
            return [arg["v"]]
        if "tuple" in arg:
            return tensors_in(arg["tuple"])
        if "dict" in arg:
            return [id for _, item in arg["dict"] for id in tensors_in(item)]
    return []


def compare(traced, left, device, tool):
    from eager import seed_of
    from replay import Replay

    comparison = Comparison()
    comparison.left += left
    with tempfile.TemporaryDirectory(prefix="nereid-kernels-") as folder:
        executor = Executor(tool, folder)
        gpu = Gpu(folder) if device == "cuda" else None
        for name, reference, candidate in traced:
            seen = {}

            def launcher(launch, name=name, seen=seen):
                got = executor.run(launch, threads=1, sanitize=True)
                key = (launch.kernel["hash"], tuple(launch.grid))
                seen[key] = seen.get(key, 0) + 1
                if seen[key] <= 2:
                    try:
                        want = gpu.run(launch) if gpu else executor.run(launch, threads=2, sanitize=False)
                        comparison.add(name, launch, got, want)
                    except NotImplementedError as error:
                        comparison.left.append(f"{name} {launch.kernel['name']}: {error}")
                return got

            try:
                first = replay_of(Replay)(reference, None)
                made = [p for p in reference["phases"] if p["phase"] in ("module", "make_inputs")]
                first.trace = {**reference, "phases": made}
                first.run(seed_of)
                replay_of(Replay)(candidate, launcher, first.inputs).run(seed_of)
            except Exception as error:  # pylint: disable=broad-except
                comparison.wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    return comparison.print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save")
    parser.add_argument("--traces")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--tool", default=str(TESTS.parent / "build/release/bin/nereid-ttir-run"))
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if options.traces:
        with gzip.open(options.traces, "rt") as file:
            traced, left = json.load(file)
        traced = [t for t in traced if all(w in t[0] for w in options.words)]
    else:
        traced, left = trace_all(options.words)
    if options.save:
        with gzip.open(options.save, "wt") as file:
            json.dump([traced, left], file)
        print(f"{len(traced)} traces in {options.save}, {len(left)} candidates without one")
        return 0
    return compare(traced, left, options.device, options.tool)


if __name__ == "__main__":
    sys.exit(main())
