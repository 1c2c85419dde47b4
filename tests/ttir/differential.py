"""Operation by operation: the TTIR executor against Triton's own interpreter, against PyTorch, or against a
GPU.

    .venv/bin/python tests/ttir/differential.py [--all] [--device cpu|cuda] [--tool nereid-ttir-run] [WORD...]

The kernels are those of cases.py: today's half of a quick choice (tests/sample.py), or all; WORDs choose by
what a name holds. Their TTIR is made by Triton's front end for sm_90 and run by the executor, its sanitizer
on. On the CPU the same data goes through Triton's interpreter, or PyTorch where that is no judge; with
`--device cuda` the same kernels run through Triton on the GPU. Prints what differs and, for each group of
cases, how many agreed to the bit and the largest difference in ulps; exit code 1 where anything differs by
more than the case allows.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "golden"), str(HERE.parent)]


def module_of(path):
    spec = importlib.util.spec_from_file_location("differential_kernels", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["differential_kernels"] = module
    spec.loader.exec_module(module)
    return module


def chosen(names):
    import cases

    return [c for c in cases.all_cases() if c.name in names]


def emit(folder, names):
    """Writes NAME.ttir for every case, or NAME.error where the front end refuses it."""
    from kernels import ttir

    module = module_of(folder + "/kernels_under_test.py")
    for case in chosen(names):
        try:
            text = ttir(getattr(module, case.name), case.signature(), {})
            pathlib.Path(folder, case.name + ".ttir").write_text(text)
        except Exception as error:  # pylint: disable=broad-except
            pathlib.Path(folder, case.name + ".error").write_text(f"{error} {error.__cause__ or ''}"[-300:])


def ulps_between(a, b):
    """How many numbers of their type are between two tensors' elements; NaN and NaN are alike, as are 0 and
    -0."""
    import torch

    if not a.dtype.is_floating_point:
        if a.dtype in (torch.uint32, torch.uint64, torch.uint16):
            a, b = (
                a.view({4: torch.int32, 8: torch.int64, 2: torch.int16}[a.element_size()]),
                b.view({4: torch.int32, 8: torch.int64, 2: torch.int16}[b.element_size()]),
            )
        return (a.to(torch.float64) - b.to(torch.float64)).abs() + (a != b).double()
    word = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]

    def ordered(t):  # signed magnitude to a line
        bits = t.contiguous().view(word).long()
        return torch.where(bits < 0, -(bits & ((1 << (8 * t.element_size() - 1)) - 1)), bits)

    p, q = ordered(a), ordered(b)
    distance = torch.where((p < 0) == (q < 0), (p - q).abs().double(), p.double().abs() + q.double().abs())
    nan_a, nan_b = a.double().isnan(), b.double().isnan()
    return torch.where(nan_a & nan_b, 0.0, torch.where(nan_a | nan_b, float("inf"), distance))


def interpreted(module, case, inputs, outputs):
    """What the case must give, by Triton's interpreter or by the case's own word."""
    if case.want is None:
        getattr(module, case.name)[(1,)](*inputs, *outputs, 5)
        return outputs
    given = [o for o, (_, _, kind) in zip(outputs, case.outputs) if kind is not None]
    want = case.want(*inputs, *given)
    want = want if isinstance(want, tuple) else (want,)
    return [w.to(o.dtype).reshape(o.shape) for w, o in zip(want, outputs)]


def on_gpu(module, case, inputs, outputs):
    import torch

    there = [t.cuda() for t in (*inputs, *outputs)]
    import triton

    if "make_tensor_descriptor" in case.kernel:
        triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda")
        )
    getattr(module, case.name)[(1,)](*there, 5)
    torch.cuda.synchronize()
    return [t.cpu() for t in there[len(inputs) :]]


def raw(t):
    import torch

    return bytes(t.contiguous().reshape(-1).view(torch.uint8).numpy())


def spec_of(folder, case, inputs, outputs):
    """The executor's job for a case, its data written to files."""
    buffers = []
    for k, (t, (_, _, kind)) in enumerate(zip([*inputs, *outputs], [*case.inputs, *case.outputs])):
        path = f"{folder}/{case.name}.{k}.bin"
        pathlib.Path(path).write_bytes(raw(t))
        buffers.append(
            {
                "file": path,
                "element_bytes": t.element_size(),
                "written": kind is not None,
                "output": k >= len(inputs),
            }
        )
    return {
        "ttir": f"{folder}/{case.name}.ttir",
        "buffers": buffers,
        "threads": 1,
        "arguments": [{"buffer": k} for k in range(len(buffers))] + [{"scalar": 5, "type": "i32"}],
    }


def as_defined(case, inputs, got, want, gpu):
    """What of an output is defined: see Case."""
    if gpu and case.gpu_defined is not None:
        where = case.gpu_defined(*inputs)
        return got[where], want[where]
    if case.unordered:
        return got.reshape(-1).sort().values, want.reshape(-1).sort().values
    return got, want


class Outcome:
    """What has been compared so far: by group of cases, how many agreed to the bit, and the largest
    difference."""

    def __init__(self, gpu):
        self.gpu, self.groups, self.wrong, self.refused = gpu, {}, [], []

    def compare(self, case, inputs, got, want):
        group = self.groups.setdefault(case.group, {"cases": 0, "bit-equal": 0, "ulps": 0.0, "by": ""})
        group["cases"] += 1
        ulps, atol = (case.gpu_ulps, case.gpu_atol) if self.gpu else (case.ulps, case.atol)
        equal = True
        for which, (a, b) in enumerate(zip(got, want)):
            a, b = as_defined(case, inputs, a, b, self.gpu)
            distance = ulps_between(a, b)
            equal = equal and bool((distance == 0).all())
            size = b.double().abs()
            near = (a.double() - b.double()).abs() <= atol * max(
                1.0, size[size.isfinite()].max().item() if size.isfinite().any() else 1.0
            )
            bad = (distance > ulps) & ~near
            beyond = distance.masked_fill(near & (distance > ulps), 0).max().item()
            if beyond > group["ulps"]:
                group["ulps"], group["by"] = beyond, case.name
            if bad.any():
                at = int(bad.reshape(-1).double().argmax())
                x, y = a.reshape(-1)[at].item(), b.reshape(-1)[at].item()
                self.wrong.append(
                    f"{case.name}: {int(bad.sum())} of {bad.numel()} elements of output {which}; the first,"
                    f" {at}, is {x!r} instead of {y!r}"
                )
                return
        group["bit-equal"] += equal

    def print(self):
        for line in self.wrong:
            print("DIFFERS", line)
        for line in self.refused:
            print("not compared:", line)
        print(f"{'group':12} {'cases':>6} {'bit-equal':>10} {'most ulps':>10}  by")
        for name, g in sorted(self.groups.items()):
            print(f"{name:12} {g['cases']:6} {g['bit-equal']:10} {g['ulps']:10.0f}  {g['by']}")
        count = sum(g["cases"] for g in self.groups.values())
        print(f"{count} cases compared, {len(self.wrong)} differ, {len(self.refused)} not compared")
        return 1 if self.wrong or count == 0 or len(self.refused) > count // 50 else 0


def compare(folder, names, tool, device, emitted):
    import torch
    import cases

    generator = torch.Generator().manual_seed(0)
    module = module_of(folder + "/kernels_under_test.py")
    outcome, ready = Outcome(device == "cuda"), []
    for case in chosen(names):
        inputs = [cases.values_of(t, shape, kind, generator) for t, shape, kind in case.inputs]
        outputs = [cases.values_of(t, shape, kind or "zeros", generator) for t, shape, kind in case.outputs]
        before = [o.clone() for o in outputs]
        try:
            want = (on_gpu if device == "cuda" else interpreted)(module, case, inputs, outputs)
            ready.append((case, inputs, before, want))
        except Exception as error:  # pylint: disable=broad-except
            outcome.refused.append(
                f"{case.name} ({'GPU' if device == 'cuda' else 'expected'}:"
                f" {str(error or error.__cause__)[-160:]!r})"
            )
    emitted()
    jobs = []
    for case, inputs, outputs, want in ready:
        if pathlib.Path(folder, case.name + ".ttir").exists():
            jobs.append((case, inputs, spec_of(folder, case, inputs, outputs), want))
        else:
            outcome.refused.append(
                f"{case.name} (front end: {pathlib.Path(folder, case.name + '.error').read_text()[-160:]!r})"
            )
    lines = "".join(json.dumps(spec) + "\n" for _, _, spec, _ in jobs)
    done = subprocess.run([tool, "--lines"], input=lines, capture_output=True, text=True, check=False)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    if len(reports) != len(jobs):
        raise SystemExit(f"{tool} answered {len(reports)} of {len(jobs)} jobs: {done.stderr[-500:]}")
    for (case, inputs, spec, want), report in zip(jobs, reports):
        if not report.get("ok"):
            outcome.wrong.append(
                f"{case.name}: {report.get('error') or [f['sentence'] for f in report.get('findings', [])]}"
            )
            outcome.groups.setdefault(case.group, {"cases": 0, "bit-equal": 0, "ulps": 0.0, "by": ""})[
                "cases"
            ] += 1
            continue
        files = [b["file"] for b in spec["buffers"]][len(case.inputs) :]
        got = [
            torch.frombuffer(bytearray(pathlib.Path(f).read_bytes()), dtype=w.dtype).reshape(w.shape)
            for f, w in zip(files, want)
        ]
        outcome.compare(case, inputs, got, want)
    return outcome.print()


def main():
    root = HERE.parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--tool", default=str(root / "build/release/bin/nereid-ttir-run"))
    parser.add_argument(
        "--part", nargs=2, help=argparse.SUPPRESS
    )  # what one of the processes below does: emit or compare, FOLDER
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if options.part:
        part, folder = options.part
        names = set(json.loads(pathlib.Path(folder, "names.json").read_text()))
        if part == "emit":
            return emit(folder, names)

        def emitted():
            while not pathlib.Path(folder, "emitted").exists():
                import time

                time.sleep(0.05)

        return compare(folder, names, options.tool, options.device, emitted)
    import cases

    wanted = [
        c
        for c in cases.all_cases()
        if (options.all or not c.slow) and all(w in c.name for w in options.words)
    ]
    import preloaded
    from sample import sampled

    wanted = sampled(wanted, 1 if options.all or options.words else 6, lambda case: case.name)
    with tempfile.TemporaryDirectory(prefix="nereid-differential-") as folder:
        pathlib.Path(folder, "kernels_under_test.py").write_text(
            cases.HEADER + "".join(c.source() for c in wanted)
        )
        pathlib.Path(folder, "names.json").write_text(json.dumps([c.name for c in wanted]))

        def command(part):
            return preloaded.command(
                "torch",
                __file__,
                "--part",
                part,
                folder,
                "--tool",
                options.tool,
                "--device",
                options.device,
            )

        compares = {**os.environ, "TRITON_INTERPRET": "0" if options.device == "cuda" else "1"}
        with (
            subprocess.Popen(command("emit"), env={**os.environ, "TRITON_INTERPRET": "0"}) as first,
            subprocess.Popen(command("compare"), env=compares) as second,
        ):
            first.wait()
            pathlib.Path(folder, "emitted").write_text("")
            code = second.wait()
        return code or (1 if first.returncode != 0 else 0)


if __name__ == "__main__":
    sys.exit(main())
