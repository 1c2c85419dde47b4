"""`nereid package` and `nereid import` with a GPU: Hugging Face's layers, traces with real times."""

import importlib.util
import json
import os
import subprocess
import sys
import types

from checks import CUDA, DEVICE, FOLDER, PROGRAM, Skipped, expect, near, prepared, run

prepared()
import torch  # noqa: E402
from torch import nn  # noqa: E402

JUDGE = ["--device", DEVICE, "--trials", "2" if CUDA else "1"]
GATE = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, factor):
        super().__init__()
        self.up = nn.Linear(width, width)
        self.factor = factor

    def forward(self, x):
        return torch.sigmoid(self.up(x)) * x * self.factor


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [64, 2.0]
"""
DEFINITION = {
    "name": "scaled_rows",
    "op_type": "pointwise",
    "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": 256}},
    "inputs": {
        "x": {"shape": ["rows", "cols"], "dtype": "float32"},
        "by": {"shape": ["cols"], "dtype": "float32"},
    },
    "outputs": {"out": {"shape": ["rows", "cols"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x, by):\n    return torch.relu(x * by)\n",
}
WORKLOAD = {
    "definition": "scaled_rows",
    "workload": {
        "uuid": "w1",
        "axes": {"rows": 512},
        "inputs": {"x": {"type": "random"}, "by": {"type": "random"}},
    },
}
KERNEL = """import triton
import triton.language as tl


@triton.jit
def scale(x, by, out, COLS: tl.constexpr):
    i, j = tl.program_id(0), tl.arange(0, COLS)
    tl.store(out + i * COLS + j, tl.maximum(tl.load(x + i * COLS + j) * tl.load(by + j), 0.0))


def run(x, by, out):
    scale[(x.shape[0],)](x, by, out, x.shape[1])
"""


def nereid_command(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, env=dict(os.environ))
    expect(
        done.returncode == 0, f"{words[0]}: exit code {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
    )
    return done.stdout


def model():
    here = {}
    exec(compile(GATE, "gate.py", "exec"), here)
    torch.manual_seed(0)
    return here["Model"]


def layers_of_hugging_face():
    (FOLDER / "fast").mkdir()
    (FOLDER / "gate.py").write_text(GATE)
    nereid_command("optimize", FOLDER / "gate.py", "-o", FOLDER / "fast/gate.py", "--first", "--budget",
                   "150s", *JUDGE,
                   "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
    repository = FOLDER / "my-kernels"
    nereid_command("package", FOLDER / "fast", "--format", "hf-kernels", "-o", repository, "--name",
                   "my-kernels",
                   "--backend", "cpu", "--backend", "cuda")  # fmt: skip
    made, x = model()(64, 2.0).to(DEVICE).requires_grad_(False), torch.randn(64, 64, device=DEVICE)
    want, other = made(x), torch.randn(3, 64, device=DEVICE)
    if importlib.util.find_spec("kernels"):
        how = kernelized(repository, made)
    else:
        how = "by path: no package kernels"
        by_path(repository / f"build/torch-{DEVICE}", made)
    for _ in range(3):
        near(made(x), want)
    near(made(other), type(made).forward(made, other))
    return how


def kernelized(repository, made):
    from kernels import (
        LocalLayerRepository,
        Mode,
        kernelize,
        register_kernel_mapping,
        use_kernel_forward_from_hub,
    )

    register_kernel_mapping({"gate": {DEVICE: LocalLayerRepository(repo_path=repository, layer_name="gate")}})
    use_kernel_forward_from_hub("gate")(type(made))
    with torch.no_grad():
        kernelize(made, mode=Mode.INFERENCE, device=DEVICE)
    expect("forward" in vars(made), "kernelize replaced nothing")
    return "kernelize"


def by_path(folder, made):
    spec = importlib.util.spec_from_file_location(
        "my_kernels", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules["my_kernels"] = package
    spec.loader.exec_module(package)
    layer = package.layers.gate
    expect(issubclass(layer, nn.Module), "the layer is not a module")
    made.forward = types.MethodType(layer.forward, made)


def written(path, content):
    path = FOLDER / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content) + "\n")


def traces_of_flashinfer_bench():
    written("set/definitions/pointwise/scaled_rows.json", DEFINITION)
    written("set/workloads/scaled_rows.jsonl", WORKLOAD)
    for name, kernel in (("right", KERNEL), ("wrong", KERNEL.replace("0.0", "0.25"))):
        spec = {"language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::run",
            "destination_passing_style": True}  # fmt: skip
        written(f"set/solutions/us/pointwise/scaled_rows/{name}.json",
                {"name": name, "definition": "scaled_rows", "author": "us", "spec": spec,
                 "sources": [{"path": "main.py", "content": kernel}]})  # fmt: skip
    nereid_command("import", "flashinfer-bench", FOLDER / "set", "-o", FOLDER / "tasks")
    timed = ["--time"] if CUDA else []
    found = nereid_command(
        "verify", "--batch", FOLDER / "tasks/pairs.jsonl", "--policy", "hybrid", *JUDGE, *timed
    )
    (FOLDER / "verdicts.jsonl").write_text(found)
    verdicts = sorted(json.loads(line)["verdict"] for line in found.splitlines())
    expect(verdicts == ["Mismatch", "Verified"], f"verdicts {verdicts}")
    if not CUDA:
        raise Skipped("judged; traces need times, so a GPU")
    nereid_command("package", FOLDER / "verdicts.jsonl", "--format", "flashinfer-bench", "-o", FOLDER / "set")
    lines = (FOLDER / "set/traces/scaled_rows.jsonl").read_text().splitlines()
    traces = {trace["solution"]: trace["evaluation"] for trace in map(json.loads, lines)}
    expect(traces["right"]["status"] == "PASSED", f"{traces}")
    expect(traces["wrong"]["status"] == "INCORRECT_NUMERICAL", f"{traces}")
    times = traces["right"]["performance"]
    expect(min(times["latency_ms"], times["reference_latency_ms"]) > 0, f"{times}")
    expect(torch.cuda.get_device_name() in traces["right"]["environment"]["hardware"], f"{traces}")
    return f"{times}"


if __name__ == "__main__":
    run(sys.argv[1], [layers_of_hugging_face, traces_of_flashinfer_bench])
