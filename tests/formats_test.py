"""`nereid import` and `nereid package`: small files of our own in the formats of others, there and back.

    tests/formats_test.py PATH/TO/nereid

The packages `kernels` and `flashinfer-bench` are installed on first use, into folders of the build.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import environments

NEREID = pathlib.Path(sys.argv.pop(1)).resolve()
ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = "kernels==0.17.2"
FLASHINFER_BENCH = "flashinfer-bench==0.1.2"
NOT_INSTALLED = (
    "torch",
    "safetensors",
    "flashinfer-python",
    "apache-tvm-ffi",
)  # its classes need none but torch
JUDGE = ["--device", "cpu", "--trials", "1"]

DEFINITION = {
    "name": "scaled_rows",
    "op_type": "pointwise",
    "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": 16}},
    "inputs": {
        "x": {"shape": ["rows", "cols"], "dtype": "float32"},
        "by": {"shape": ["cols"], "dtype": "float32"},
        "factor": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"out": {"shape": ["rows", "cols"], "dtype": "float32"}},
    "reference": "import torch\n\n\ndef run(x, by, factor):\n    return torch.relu(x * by) * factor\n",
}
WORKLOAD = {
    "definition": "scaled_rows",
    "workload": {
        "uuid": "w1",
        "axes": {"rows": 8},
        "inputs": {
            "x": {"type": "random"},
            "by": {"type": "random"},
            "factor": {"type": "scalar", "value": 1.5},
        },
    },
}
KERNEL = """
import triton
import triton.language as tl
from parts.numbers import ZERO


@triton.jit
def scale(x, by, out, factor, COLS: tl.constexpr):
    i, j = tl.program_id(0), tl.arange(0, COLS)
    y = tl.maximum(tl.load(x + i * COLS + j) * tl.load(by + j), ZERO) * factor
    tl.store(out + i * COLS + j, y)


def run(x, by, factor, out):
    scale[(x.shape[0],)](x, by, out, factor, x.shape[1])
"""


def solution(**spec):
    return {
        "name": "by_rows",
        "definition": "scaled_rows",
        "author": "us",
        "spec": {
            "language": "triton",
            "target_hardware": ["cuda"],
            "entry_point": "src/main.py::run",
            "destination_passing_style": True,
            **spec,
        },
        "sources": [
            {"path": "src/main.py", "content": KERNEL.replace("parts.numbers", "src.parts.numbers")},
            {
                "path": "src/parts/numbers.py",
                "content": "import triton.language as tl\n\nZERO = tl.constexpr(0.0)\n",
            },
        ],
    }


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.tasks = self.root / "tasks"

    def write(self, path, content):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def run_nereid(self, *arguments, code=0):
        done = subprocess.run([NEREID, *map(str, arguments)], capture_output=True, text=True,
            env={**os.environ, "NEREID_KEEP_WARM": "60"})  # fmt: skip
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-3000:], done.stderr[-3000:]))
        return done

    def imported(self, name, path, code=0):
        return json.loads(self.run_nereid("import", name, path, "-o", self.tasks, "--json", code=code).stdout)

    def verdicts(self):
        answer = self.run_nereid(
            "verify", "--batch", self.tasks / "pairs.jsonl", "--policy", "hybrid", *JUDGE
        )
        return {json.loads(line)["id"]: json.loads(line) for line in answer.stdout.splitlines()}


class FlashInferBench(Case):
    def test_definition_workload_and_solutions(self):
        self.write("set/definitions/pointwise/scaled_rows.json", DEFINITION)
        self.write("set/workloads/pointwise/scaled_rows.jsonl", json.dumps(WORKLOAD) + "\n")
        self.write("set/solutions/good.json", solution())
        wrong = solution()
        wrong["name"] = "wrong"
        wrong["sources"][0]["content"] = wrong["sources"][0]["content"].replace(
            "* factor\n", "* factor * 1.01\n"
        )
        self.write("set/solutions/wrong.json", wrong)
        self.write("set/solutions/cuda.json", {**solution(language="cuda"), "name": "in_cuda"})
        for name in ("flashinfer-bench", "sol-execbench"):
            made = self.imported(name, self.root / "set")
            self.assertEqual([pathlib.Path(task).name for task in made["tasks"]], ["scaled_rows.py"])
            self.assertIn("rows = 8\ncols = 16\n", (self.tasks / "scaled_rows.py").read_text())
            self.assertEqual(len(made["candidates"]), 2)
            self.assertIn("'cuda'", made["skipped"][0]["why"])
        verdicts = self.verdicts()
        self.assertEqual(verdicts["scaled_rows/by_rows"]["verdict"], "Verified", verdicts)
        self.assertEqual(verdicts["scaled_rows/wrong"]["verdict"], "Mismatch", verdicts)
        # Axes are sizes that can be varied.
        mine = self.tasks / "candidates/scaled_rows/by_rows.py"
        done = self.run_nereid(
            "verify", self.tasks / "scaled_rows.py", mine, "--policy", "hybrid", *JUDGE, "--also-at", "rows=3"
        )
        self.assertIn("At rows=3", done.stdout)

    def test_what_no_task_can_be_made_of_is_named(self):
        for change, said in (
            ({"reference": "def other():\n    pass\n"}, "a function `run`"),
            ({"reference": "def run(:"}, "reference: line 1"),
            ({"axes": {"rows": {"type": "var"}, "cols": {"type": "var"}}}, "axis rows: expected a size"),
            ({"inputs": {"not a name": {"shape": [], "dtype": "float32"}}}, "expected a Python name"),
            ({"inputs": {"x": {"shape": ["depth"], "dtype": "float32"}}}, "expected a list of axes"),
            (
                {"inputs": {"x": {"shape": ["cols"], "dtype": "float4_e2m1"}}},
                "no inputs of type 'float4_e2m1'",
            ),
            ({"reference": "cols = 3\n" + DEFINITION["reference"]}, "another cols at top level"),
        ):
            workload = [] if "axes" in change else [json.dumps(WORKLOAD)]
            path = self.write("one.jsonl", "\n".join([json.dumps({**DEFINITION, **change}), *workload]))
            self.assertIn(said, self.imported("flashinfer-bench", path, code=1)["skipped"][0]["why"])
        path = self.write("no.json", "{")
        self.assertIn("expected JSON", self.imported("flashinfer-bench", path, code=1)["skipped"][0]["why"])
        for spec, said in (
            ({"entry_point": "none.py::run"}, "one of the sources"),
            ({"entry_point": "src/main.py::a b"}, "Python name"),
        ):
            path = self.write(
                "two.jsonl", "\n".join(map(json.dumps, (DEFINITION, WORKLOAD, solution(**spec))))
            )
            self.assertIn(said, self.imported("flashinfer-bench", path)["skipped"][0]["why"])
        outside = solution()
        outside["sources"].append({"path": "../../home/x.py", "content": "x = 1"})
        path = self.write("three.jsonl", "\n".join(map(json.dumps, (DEFINITION, WORKLOAD, outside))))
        self.assertIn(
            "below the solution's folder", self.imported("flashinfer-bench", path)["skipped"][0]["why"]
        )
        self.assertFalse((self.root / "home").exists())

    def dataset(self):
        """set/ with a definition, two workloads and three solutions: right, wrong, with another shape."""
        self.write("set/definitions/pointwise/scaled_rows.json", DEFINITION)
        other = {**WORKLOAD, "workload": {**WORKLOAD["workload"], "uuid": "w2", "axes": {"rows": 3}}}
        self.write(
            "set/workloads/scaled_rows.jsonl", "".join(json.dumps(w) + "\n" for w in (WORKLOAD, other))
        )
        for name, old, new in (
            ("by_rows", "", ""),
            ("too_large", "* factor\n", "* factor * 1.01\n"),
            (
                "raises",
                "def run(x, by, factor, out):\n",
                "def run(x, by, factor, out):\n    raise ValueError('no')\n",
            ),
        ):
            made = solution()
            made["name"] = name
            made["sources"][0]["content"] = made["sources"][0]["content"].replace(old, new)
            self.write(f"set/solutions/{name}.json", made)
        return self.root / "set"

    def judged(self, dataset):
        """Verdicts of the dataset's pairs, as a GPU's: those that are Verified with times."""
        self.imported("flashinfer-bench", dataset)
        verdicts = list(self.verdicts().values())
        for verdict in verdicts:
            if verdict["verdict"] == "Verified":
                verdict["times"] = {"candidate_ms": 0.5, "reference_ms": 2.0, "speedup": 4.0}
        return self.write("verdicts.jsonl", "".join(json.dumps(verdict) + "\n" for verdict in verdicts))

    def test_traces_of_verdicts(self):
        dataset = self.dataset()
        verdicts = self.judged(dataset)
        packaged = self.run_nereid(
            "package",
            verdicts,
            "--format",
            "flashinfer-bench",
            "-o",
            dataset,
            "--hardware",
            "NVIDIA H200",
            "--json",
        )
        self.assertEqual(json.loads(packaged.stdout)["skipped"], [])
        lines = (dataset / "traces/scaled_rows.jsonl").read_text().splitlines()
        found = {(t["solution"], t["workload"]["uuid"]): t["evaluation"] for t in map(json.loads, lines)}
        self.assertEqual({key: e["status"] for key, e in found.items()}, {
            (name, uuid): status for uuid in ("w1", "w2")
            for name, status in (("by_rows", "PASSED"), ("too_large", "INCORRECT_NUMERICAL"),
                ("raises", "RUNTIME_ERROR"))
        })  # fmt: skip
        right, wrong, raises = (found[name, "w1"] for name in ("by_rows", "too_large", "raises"))
        self.assertEqual(
            right["performance"], {"latency_ms": 0.5, "reference_latency_ms": 2.0, "speedup_factor": 4.0}
        )
        self.assertEqual(right["environment"]["hardware"], "NVIDIA H200")
        self.assertIn("torch", right["environment"]["libs"])
        self.assertLess(right["correctness"]["max_relative_error"], 1e-5)
        self.assertAlmostEqual(wrong["correctness"]["max_relative_error"], 0.01, delta=2e-3)
        self.assertIsNone(wrong["performance"])
        self.assertIn("ValueError", raises["log"])
        self.imported("flashinfer-bench", dataset)  # traces do not stand in the way

    def test_what_makes_no_trace_is_named(self):
        dataset = self.dataset()
        self.judged(dataset)
        kept = [json.loads(line) for line in (self.root / "verdicts.jsonl").read_text().splitlines()]
        untimed = next(verdict for verdict in kept if verdict["verdict"] == "Verified")
        strange = {**untimed, "id": "other/by_rows"}
        ours = {**untimed, "verdict": "Error", "reason": "the worker died"}
        refused = {**untimed, "verdict": "Disallowed", "reason": "PyTorch computes it."}
        for verdict, said in (
            ({**untimed, "times": None}, "--time"),
            (strange, "no such pair"),
            (ours, "the worker died"),
            (refused, "no such status"),
        ):
            path = self.write("one.jsonl", json.dumps(verdict) + "\n")
            done = self.run_nereid(
                "package", path, "--format", "flashinfer-bench", "-o", dataset, "--hardware", "H200", code=2
            )
            self.assertIn(said, done.stderr)
        path = self.write("one.jsonl", "{}\n")
        done = self.run_nereid("package", path, "--format", "flashinfer-bench", "-o", dataset, code=2)
        self.assertIn("one.jsonl:1", done.stderr)
        self.assertFalse((dataset / "traces").exists())

    def test_a_packaged_solution_is_imported_again(self):
        path = self.write("set.jsonl", "\n".join(map(json.dumps, (DEFINITION, WORKLOAD))))
        self.imported("flashinfer-bench", path)
        fast = self.root / "scaled_rows.py"
        self.run_nereid("optimize", self.tasks / "scaled_rows.py", "-o", fast, "--first", "--budget", "270s",
            *JUDGE, "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.run_nereid("package", fast, "--format", "flashinfer-bench", "-o", self.root / "more")
        found = json.loads((self.root / "more/solutions/scaled_rows_nereid.json").read_text())
        self.assertEqual(found["spec"]["language"], "triton")
        self.write("more/set.jsonl", path.read_text())
        self.imported("flashinfer-bench", self.root / "more")
        verdicts = self.verdicts()
        self.assertEqual(verdicts["scaled_rows/scaled_rows_nereid"]["verdict"], "Verified", verdicts)


LOADED = """
import json, pathlib, sys
from flashinfer_bench.data import Definition, Solution, Trace, TraceSet

root, mine, again = map(pathlib.Path, sys.argv[1:])
found = TraceSet.from_path(root)
traces = found.traces["scaled_rows"]
(again / "definitions").mkdir(parents=True)
(again / "solutions").mkdir()
# What their classes write.
(again / "definitions/d.json").write_text(found.definitions["scaled_rows"].model_dump_json())
for solution in [*found.solutions["scaled_rows"], Solution.model_validate_json(mine.read_text())]:
    (again / f"solutions/{solution.name}.json").write_text(solution.model_dump_json())
(again / "w.jsonl").write_text("".join(t.model_dump_json() + "\\n" for t in found.workloads["scaled_rows"]))
(again / "t.jsonl").write_text("".join(t.model_dump_json() + "\\n" for t in traces))
best = found.get_best_trace("scaled_rows", axes={"rows": 8})
print(json.dumps({
    "statuses": sorted(t.evaluation.status.value for t in traces), "best": best and best.solution,
    "passed": sum(t.is_successful() for t in traces), "workloads": len(found.workloads["scaled_rows"]),
}))
"""


class FlashInferPackage(FlashInferBench):
    """The same files with the classes of the package."""

    def test_their_classes_read_and_write_what_we_do(self):
        bin_folder = environments.environment(
            NEREID.parents[1] / "test-packages" / FLASHINFER_BENCH, [FLASHINFER_BENCH], NOT_INSTALLED
        )
        dataset, again = self.dataset(), self.root / "again"
        verdicts, fast = self.judged(dataset), self.root / "scaled_rows.py"
        self.run_nereid(
            "package", verdicts, "--format", "flashinfer-bench", "-o", dataset, "--hardware", "H200"
        )
        self.run_nereid("optimize", self.tasks / "scaled_rows-w1.py", "-o", fast, "--first", "--budget",
            "270s", *JUDGE, "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.run_nereid("package", fast, "--format", "flashinfer-bench", "-o", self.root / "more")
        mine = self.root / "more/solutions/scaled_rows_nereid.json"
        done = subprocess.run(
            [bin_folder / "python", self.write("load.py", LOADED), dataset, mine, again],
            capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        said = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(
            said["statuses"], 2 * ["INCORRECT_NUMERICAL"] + 2 * ["PASSED"] + 2 * ["RUNTIME_ERROR"]
        )
        self.assertEqual((said["passed"], said["workloads"]), (2, 2))
        self.tasks = self.root / "tasks2"
        made = self.imported("flashinfer-bench", again)
        self.assertEqual((len(made["tasks"]), len(made["candidates"]), made["skipped"]), (2, 8, []))
        verdicts = {name: verdict["verdict"] for name, verdict in self.verdicts().items()}
        self.assertEqual(verdicts["scaled_rows-w2/by_rows"], "Verified")
        self.assertEqual(verdicts["scaled_rows-w2/too_large"], "Mismatch")
        self.assertEqual(verdicts["scaled_rows-w1/scaled_rows_nereid"], "Verified")


ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def add__Tensor_kernel_impl(x, y, alpha=1):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
"""


class BackendBench(Case):
    def test_there_and_back(self):
        self.write("generated_kernels/add__Tensor/add__Tensor_implementation_v1.py", ADD)
        self.write(
            "generated_kernels/add__Tensor/add__Tensor_implementation_v2.py", "def other():\n    pass\n"
        )
        self.write(
            "generated_kernels/relu__default/relu__default_implementation.py",
            "def relu__default_kernel_impl(x):\n    return x\n",
        )
        made = self.imported("backendbench", self.root / "generated_kernels")
        self.assertEqual(len(made["tasks"]), 2)
        self.assertIn("add__Tensor_kernel_impl", made["skipped"][0]["why"])
        verdicts = self.verdicts()
        self.assertEqual(
            verdicts["add__Tensor/add__Tensor_implementation_v1"]["verdict"], "Verified", verdicts
        )
        self.assertEqual(
            verdicts["relu__default/relu__default_implementation"]["verdict"], "Disallowed", verdicts
        )
        fast = self.root / "add__Tensor.py"
        self.run_nereid("optimize", self.tasks / "add__Tensor.py", "-o", fast, "--first", "--budget", "270s",
            *JUDGE, "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.run_nereid("package", fast, "--format", "backendbench", "-o", self.root / "mine")
        again = self.imported("backendbench", self.root / "mine")
        self.assertEqual(
            [pathlib.Path(one).name for one in again["candidates"]], ["add__Tensor_implementation_nereid.py"]
        )
        self.assertEqual(
            self.verdicts()["add__Tensor/add__Tensor_implementation_nereid"]["verdict"], "Verified"
        )

    def test_an_operator_that_needs_more(self):
        self.write(
            "generated_kernels/upsample_nearest1d__default/upsample_nearest1d__default_implementation.py",
            "def upsample_nearest1d__default_kernel_impl(x):\n    return x\n",
        )
        self.imported("backendbench", self.root / "generated_kernels")
        done = self.run_nereid("trace", self.tasks / "upsample_nearest1d__default.py", code=1)
        self.assertIn("--inputs", done.stderr)
        self.imported("backendbench", self.write("empty/file.py", "").parent, code=1)


TESTED = """import torch
import triton
import triton.language as tl


@triton.jit
def twice_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) * 2.0)


def twice(x, shift=0.0):
    out = torch.empty_like(x)
    twice_kernel[(1,)](x, out, x.numel())
    return out + shift

""" + "#" * 146 + """

def test_twice():
    results = {}
    x = torch.randn(16, device="cuda")
    results["test_case_1"] = twice(x)
    results["test_case_2"] = twice(results["test_case_1"], shift=1.0)
    return results


result_gold = test_twice()
"""  # fmt: skip


class TritonBench(Case):
    def test_a_task_for_each_call(self):
        made = self.imported("tritonbench", self.write("twice.py", TESTED))
        self.assertEqual(
            [pathlib.Path(task).name for task in made["tasks"]],
            ["twice-test_twice-0.py", "twice-test_twice-1.py"],
        )
        for number, task in enumerate(made["tasks"]):
            trace = json.loads(self.run_nereid("trace", task, "--json").stdout)
            self.assertTrue(any("launch" in step for step in trace["phases"][-1]["steps"]))
            mine = self.write("mine.py", TESTED.split("#" * 146)[0] + "\n\nclass ModelNew(torch.nn.Module):\n"
                                                            "    def forward(self, arguments, named):\n"
                                                            "        return twice(*arguments, "
                                                            "**named)\n")  # fmt: skip
            done = self.run_nereid("verify", task, mine, "--policy", "hybrid", *JUDGE)
            self.assertIn("Verified", done.stdout, number)

    def test_what_is_no_such_file_is_named(self):
        for text, said in (
            (TESTED.replace("#" * 146, "#" * 80), "146 #"),
            (TESTED.replace("def test_twice", "def check"), "a function `test...`"),
        ):
            self.assertIn(
                said, self.imported("tritonbench", self.write("twice.py", text), code=1)["skipped"][0]["why"]
            )


GATE = """
import torch
from torch import nn


class Config:
    def __init__(self, scale):
        self.scale = scale


class Model(nn.Module):
    def __init__(self, dim, scale=1.0):
        super().__init__()
        self.up, self.config = nn.Linear(dim, dim), Config(scale)

    def forward(self, x):
        return torch.sigmoid(self.up(x)) * x * self.config.scale


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return [16, 2.0]
"""
NORM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(4, 16)]


def get_init_inputs():
    return []
"""
KERNELIZED = """
import json, pathlib, sys, warnings
import torch
from torch import nn
from triton.language.extra import libdevice  # noqa: F401
from kernels import LocalLayerRepository, Mode, kernelize
from kernels import register_kernel_mapping, use_kernel_forward_from_hub

repository, answers = pathlib.Path(sys.argv[1]), {}


def layer(name, path):
    here = {}
    exec(compile(pathlib.Path(path).read_text(), path, "exec"), here)
    register_kernel_mapping({name: {"cpu": LocalLayerRepository(repo_path=repository, layer_name=name)}})
    return use_kernel_forward_from_hub(name)(here["Model"])


Gate, Norm = layer("gate", sys.argv[2]), layer("norm", sys.argv[3])


def compared(name, module, x):
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        want = module(x)
        kernelized = kernelize(module, mode=Mode.INFERENCE, device="cpu")
        got = kernelized(x)
        answers[name] = {"near": bool(torch.allclose(got, want, atol=1e-5)),
                         "same": bool(torch.equal(got, want)),
                         "warned": [str(w.message) for w in caught if "its own forward" in str(w.message)],
                         "replaced": "forward" in vars(module)}


compared("verified", Gate(16, 2.0), torch.randn(4, 16))
compared("in a model", nn.Sequential(Gate(16, 2.0), nn.ReLU(), Gate(16, 2.0)), torch.randn(4, 16))
compared("another size", Gate(16, 2.0), torch.randn(5, 16))
compared("another width", Gate(8, 2.0), torch.randn(4, 8))
compared("another attribute", Gate(16, 3.0), torch.randn(4, 16))
compared("verified in training", Norm(), torch.randn(4, 16))
compared("another mode", Norm().eval(), torch.randn(4, 16))
hooked = Gate(16, 2.0)
hooked.up.register_forward_hook(lambda module, inputs, output: output + 1)
compared("a hook", hooked, torch.randn(4, 16))
module = Gate(16, 2.0)
x = torch.randn(4, 16)
compared("changed weights", module, x)
with torch.no_grad():
    module.up.weight.mul_(0.5)
    module.up = nn.Linear(16, 16)
    changed = module(x)
    answers["changed weights"]["near"] = bool(torch.allclose(changed, type(module).forward(module, x),
                                                             atol=1e-5))
print(json.dumps(answers))
"""


class Kernels(Case):
    @classmethod
    def setUpClass(cls):
        cls.site = NEREID.parents[1] / "test-packages" / KERNELS
        if not (cls.site / "kernels").is_dir():
            command = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--target",
                cls.site,
                KERNELS,
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def test_layers_for_kernelize(self):
        (self.root / "fast").mkdir()
        tasks = {"gate": self.write("gate_task.py", GATE), "norm": self.write("norm_task.py", NORM)}
        for name, task in tasks.items():
            self.run_nereid("optimize", task, "-o", self.root / f"fast/{name}.py", "--first", "--budget",
                "270s", *JUDGE, "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.write("fast/other.py", "x = 1\n")
        repository = self.root / "my-kernels"
        made = self.run_nereid("package", self.root / "fast", "--format", "hf-kernels", "-o", repository,
            "--name", "my-kernels", "--backend", "cpu", "--backend", "cuda")  # fmt: skip
        self.assertIn("expected a file with `class ModelNew`", made.stderr)
        self.assertTrue((repository / "build/torch-cuda/metadata.json").is_file())
        program = self.write("use.py", KERNELIZED)
        environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(self.site)}
        done = subprocess.run(
            [sys.executable, program, repository, *tasks.values()],
            capture_output=True,
            text=True,
            env=environment,
        )
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        answers = json.loads(done.stdout.splitlines()[-1])
        for name, answer in answers.items():
            self.assertTrue(answer["near"], (name, answers))
        for name in ("verified", "in a model", "verified in training", "changed weights", "a hook"):
            self.assertEqual(answers[name]["warned"], [], name)
        self.assertTrue(answers["verified"]["replaced"])
        for name, said in (
            ("another size", "(5, 16)"),
            ("another width", "in_features"),
            ("another attribute", "scale"),
            ("another mode", "training"),
        ):
            self.assertTrue(answers[name]["same"], name)
            self.assertIn(said, answers[name]["warned"][0])

    def test_wrong_input_is_named(self):
        plain = self.write("plain.py", "class ModelNew:\n    pass\n")
        for arguments, said in (
            ([plain, "--format", "hf-kernels"], "the guard at the end"),
            ([self.root / "none", "--format", "hf-kernels"], "no such file"),
            ([plain, "--format", "wheel"], "not in"),
        ):
            done = self.run_nereid("package", *arguments, "-o", self.root / "out", code=2)
            self.assertIn(said, done.stderr)
        done = self.run_nereid(
            "package", plain, "--format", "backendbench", "-o", self.root / "no/folder", code=2
        )
        self.assertIn("there is no folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
