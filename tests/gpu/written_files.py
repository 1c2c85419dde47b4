"""Files that the compiler writes, called on a GPU: results against the reference's, and host time per call.

    python3 tests/gpu/written_files.py NEREID [--calls 2000]

Each module is written by `nereid lower` (direct launches), and by `nereid optimize --cuda-graph`. A row gives
microseconds per call, issued back to back at sizes where kernels take less than the host: eager PyTorch, the
file's `forward` through Triton's dispatch, its direct launches, its own CUDA graph, and the bare replay of a
CUDA graph of the same launches. Fails where a result differs, where a file does not launch directly or does
not capture, or where direct launches are no faster than Triton's dispatch.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
# name: (body of the class, inputs)
MODULES = {
    "pointwise": ("def forward(self, x, y):\n return torch.relu(x + y)",
        "torch.randn(64, 64), torch.randn(64, 64)"),
    "mlp": ("def __init__(self):\n super().__init__()\n"
            " self.net = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, "
            "32))\n"
            "def forward(self, x):\n return torch.softmax(self.net(x), -1)", "torch.randn(64, 64)"),
    "several": ("def forward(self, x):\n return {'a': x.sum(-1), 'b': [x.exp(), (x * 2).mean()]}",
        "torch.randn(64, 64)"),
    "views": ("def __init__(self):\n super().__init__()\n self.fc = nn.Linear(64, 48)\ndef forward(self, "
              "x):\n"
              " y = self.fc(x)\n return [*y.split(16, 1), y.t()]", "torch.randn(64, 64)"),
    "statistics": ("def __init__(self):\n super().__init__()\n self.bn = nn.BatchNorm1d(64)\n"
                   "def forward(self, x):\n return self.bn(x)", "torch.randn(64, 64)"),
    "recurrent": ("def __init__(self):\n super().__init__()\n self.rnn = nn.GRU(160, 160)\n"
                  "def forward(self, x, h):\n return self.rnn(x, h)",
                  "torch.randn(4, 16, 160), torch.randn(1, 16, 160)"),
    "dropout": ("def forward(self, x):\n return F.dropout(torch.sigmoid(x), 0.3)", "torch.randn(64, 64)"),
    "encoder": ("def __init__(self):\n super().__init__()\n"
                " self.layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)\n"
                "def forward(self, x):\n return self.layer(x)", "torch.randn(2, 32, 64)"),
    "half": ("def __init__(self):\n super().__init__()\n self.fc = nn.Linear(64, 64).half()\n"
             "def forward(self, x):\n return F.silu(self.fc(x))", "torch.randn(64, 64).half()"),
}  # fmt: skip
DRAWS = {"dropout"}  # modules that draw from the generator of the device
SHARES = {"views"}  # modules whose results share memory: no CUDA graph is written


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in (value.values() if isinstance(value, dict) else value) for t in flat(item)]


def microseconds(call, calls):
    """The median of nine rounds; kernels of a round are waited for after its time is taken."""
    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(calls // 9):
            call()
        times.append((time.perf_counter() - began) / (calls // 9) * 1e6)
        torch.cuda.synchronize()
    return statistics.median(times)


def launches(model, inputs):
    """How many kernels a call launches. While a hook is set, `forward` launches them through Triton."""
    from triton import knobs

    seen = []
    knobs.runtime.launch_enter_hook.add(seen.append)
    try:
        model(*inputs)
    finally:
        knobs.runtime.launch_enter_hook.remove(seen.append)
    return len(seen)


def replayed(model, inputs, calls):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(*inputs)
    return microseconds(graph.replay, calls)


class Failures(list):
    def check(self, holds, text):
        if not holds:
            self.append(text)


def compare(failures, name, reference, made, fresh_inputs):
    """Several calls with other inputs: the first compiles, the second is recorded or captured, then the
    rest."""
    for call in range(5):
        inputs = fresh_inputs()
        torch.manual_seed(call)
        expected = flat(reference(*inputs))
        if name.split()[0] in DRAWS:
            torch.manual_seed(call)
        got = flat(made(*inputs))
        failures.check(len(expected) == len(got), f"{name}: {len(got)} results, expected {len(expected)}")
        for a, b in zip(expected, got):
            tolerance = 5e-3 if a.dtype == torch.float16 else 1e-3
            close = torch.allclose(a, b, atol=tolerance, rtol=tolerance)
            failures.check(
                close, f"{name}, call {call}: differs by {(a.float() - b.float()).abs().max().item():.3g}"
            )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    failures, rows = Failures(), []
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        tasks = []
        for name, (body, inputs) in MODULES.items():
            text = "\n    ".join(body.splitlines())
            tasks.append(folder / f"{name}.py")
            tasks[-1].write_text(
                f"{HEAD}class Model(nn.Module):\n    {text}\ndef get_inputs():\n    return [{inputs}]\ndef"
                " get_init_inputs():\n    return []\n"
            )
        subprocess.run(
            [options.nereid, "lower", *tasks, "-o", folder / "direct"], check=True, stdout=subprocess.DEVNULL
        )
        os.makedirs(folder / "graph")
        running = [
            subprocess.Popen(
                [options.nereid, "optimize", task, "-o", folder / "graph" / task.name, "--proposers",
                    "compiler", "--once",
                 "--no-store", "--keep-slower", "--cuda-graph", "--device", "cuda"],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for task in tasks if task.stem not in DRAWS | SHARES
        ]  # fmt: skip
        for process in running:
            output, _ = process.communicate(timeout=240)
            failures.check(
                process.returncode == 0, f"{' '.join(map(str, process.args[1:3]))}: {output[-400:]}"
            )
        for task in tasks:
            name, module = task.stem, load(task, f"{task.stem}_task")

            def fresh_inputs(module=module):
                return [t.cuda() for t in module.get_inputs()]

            reference = module.Model().cuda()
            row = {"module": name}
            for kind in ("direct", "graph"):
                path = folder / kind / task.name
                if not path.exists():
                    continue
                made = load(path, f"{name}_{kind}").ModelNew().cuda()
                made.load_state_dict(reference.state_dict())
                try:
                    compare(failures, f"{name} ({kind})", reference, made, fresh_inputs)
                except Exception as error:
                    failures.append(f"{name} ({kind}): {type(error).__name__}: {str(error)[:300]}")
                    continue
                inputs = fresh_inputs()
                row[kind] = microseconds(lambda: made(*inputs), options.calls)
                if kind == "graph":
                    held = made.__dict__["_graph_captured"]
                    failures.check(held.key is not None, f"{name}: is not captured: {held.why}")
                    continue
                seen = made.__dict__["_guard_seen"].known
                directly = seen is not None and seen[3][0] is not None
                failures.check(directly, f"{name}: does not launch directly")
                row["launches"] = launches(made, inputs)
                if name not in DRAWS:
                    row["replay"] = replayed(made, inputs, options.calls)
                plain = type(made).forward
                inner = getattr(plain, "__wrapped__", None)
                failures.check(inner is not None, f"{name}: has no guard")
                if inner is not None:
                    row["dispatch"] = microseconds(lambda: inner(made, *inputs), options.calls // 4)
                    slower = name not in DRAWS and row[kind] >= row["dispatch"]
                    failures.check(not slower, f"{name}: direct launches take longer than dispatch")
            inputs = fresh_inputs()
            row["eager"] = microseconds(lambda: reference(*inputs), options.calls)
            rows.append(row)
    columns = ("launches", "eager", "dispatch", "direct", "graph", "replay")
    print(f"{torch.cuda.get_device_name()}, microseconds per call")
    print(f"{'module':12}" + "".join(f"{c:>10}" for c in columns))
    for row in rows:
        print(
            f"{row['module']:12}" + "".join(f"{row[c]:10.1f}" if c in row else f"{'-':>10}" for c in columns)
        )
    print(json.dumps(rows))
    for failure in failures:
        print("FAILED", failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
