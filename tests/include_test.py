"""Modules in several files: what a command includes of a folder, what it refuses, and what its errors say.

tests/include_test.py PATH/TO/nereid
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import preloaded

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())

LAYERS = """
import torch
from torch import nn
from parts.activations import gated


class Gate(nn.Module):
    def __init__(self, dim, scale=1.0):
        super().__init__()
        self.up, self.scale = nn.Linear(dim, dim), scale

    def forward(self, x):
        return gated(self.up(x), x) * self.scale
"""
ACTIVATIONS = """
import torch
from . import constants


def gated(x, y):
    return torch.sigmoid(x) * y + constants.SHIFT
"""
TASK = """
import torch
from layers import Gate


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = Gate(dim)

    def forward(self, x):
        return self.gate(x)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""
CANDIDATE = """
import torch
import triton
import triton.language as tl
from layers import Gate
from parts.constants import SHIFT


@triton.jit
def gate_kernel(up, x, out, shift, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    y = tl.sigmoid(tl.load(up + i)) * tl.load(x + i) + shift
    tl.store(out + i, y)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = Gate(dim)

    def forward(self, x):
        up, out = self.gate.up(x), torch.empty_like(x)
        gate_kernel[(1,)](up, x, out, SHIFT, 32)
        return out
"""


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.home = self.root / "home"
        self.here = self.home / "project"
        self.write("project/model.py", TASK)
        self.write("project/layers.py", LAYERS)
        self.write("project/parts/__init__.py", "")
        self.write("project/parts/activations.py", ACTIVATIONS)
        self.write("project/parts/constants.py", "SHIFT = 0.25\n")

    def write(self, path, text):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_nereid(self, *arguments, code=0, folder=None):
        environment = {**os.environ, "HOME": str(self.home), "NEREID_KEEP_WARM": "60"}
        done = subprocess.run([NEREID, *map(str, arguments)], capture_output=True, text=True,
            cwd=folder or self.root, env=environment)  # fmt: skip
        self.assertEqual(done.returncode, code, (arguments, done.stdout[-2000:], done.stderr[-2000:]))
        return done

    def trace(self, *arguments, code=0, **more):
        done = self.run_nereid("trace", *arguments, "--json", code=code, **more)
        return json.loads(done.stdout) if done.stdout else done.stderr


class Imports(Folder):
    def test_siblings_and_a_package_on_every_command(self):
        model = self.here / "model.py"
        calls = [step.get("call") for step in self.trace(model)["phases"][-1]["steps"]]
        self.assertIn("aten::sigmoid", calls)
        self.trace("model.py", folder=self.here)  # a path without a folder
        lowered = json.loads(self.run_nereid("lower", model, "--json").stdout)
        self.assertIn("@triton.jit", lowered["code"])
        mine = self.write("elsewhere/mine.py", CANDIDATE)
        verdict = self.run_nereid(
            "verify", model, mine, "--policy", "hybrid", "--device", "cpu", "--trials", "1"
        )
        self.assertIn("Verified", verdict.stdout)
        out = self.root / "fast.py"
        self.run_nereid("optimize", model, "-o", out, "--policy", "hybrid", "--first", "--device", "cpu",
                        "--trials", "1", "--budget", "270s",
                        "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.assertNotIn("nereid-include", out.read_text())
        pairs = self.write("pairs.jsonl", json.dumps({"id": 1, "reference": "project/model.py",
            "candidate": "elsewhere/mine.py"}) + "\n")  # fmt: skip
        answer = self.run_nereid(
            "verify", "--batch", pairs, "--policy", "hybrid", "--device", "cpu", "--trials", "1"
        )
        self.assertEqual(json.loads(answer.stdout)["verdict"], "Verified")

    def test_models_that_are_a_siblings_class(self):
        for form, init in (
            ("class Model(Gate):\n    pass", "[8]"),
            ("Model = Gate", "[8]"),
            ("import functools\nModel = functools.partial(Gate, 8, scale=2.0)", "[]"),
        ):
            text = (
                f"import torch\nfrom layers import Gate\n\n\n{form}\n\n\n"
                "def get_inputs():\n    return [torch.randn(4, 8)]\n\n\n"
                f"def get_init_inputs():\n    return {init}\n"
            )
            model, out = self.write("project/model.py", text), self.root / "fast.py"
            answer = self.run_nereid("optimize", model, "-o", out, "--policy", "hybrid", "--first",
                                     "--device", "cpu", "--trials", "1", "--budget", "270s",
                                     "--keep-slower", "--no-store", "--proposers", "compiler",
                                     "--json")  # fmt: skip
            self.assertEqual(json.loads(answer.stdout)["verdict"], "Verified", form)
            self.assertIn("@triton.jit", out.read_text())
            out.unlink()

    def test_folders_of_include(self):
        (self.here / "model.py").rename(self.root / "model.py")
        self.assertIn("layers.py", self.run_nereid("trace", "model.py", code=1).stderr)
        self.trace("model.py", "--include", self.here)
        self.trace("--include", "home/project/", "model.py")  # one folder for each --include

    def test_a_candidates_own_files_only_from_include(self):
        own = self.write("elsewhere/mine.py", CANDIDATE.replace("from layers", "from own_layers"))
        self.write("elsewhere/own_layers.py", LAYERS)
        self.write("elsewhere/unused.py", "raise RuntimeError('not imported')")
        common = [
            "verify",
            self.here / "model.py",
            own,
            "--policy",
            "hybrid",
            "--device",
            "cpu",
            "--trials",
            "1",
        ]
        refused = self.run_nereid(*common, code=1).stdout
        self.assertIn("Untraceable", refused)
        self.assertIn("own_layers.py", refused)
        self.assertIn("Verified", self.run_nereid(*common, "--include", own.parent).stdout)

    def test_a_name_of_an_installed_package_stays_the_package(self):
        self.write("project/numbers.py", "raise RuntimeError('the local one')\n")
        self.write("project/functools.py", "raise RuntimeError('the local one')\n")
        self.write("project/model.py", "import numbers, functools\n" + TASK)
        self.trace(self.here / "model.py")

    def test_sizes_of_shrink_and_errors_name_their_lines(self):
        self.write(
            "project/layers.py",
            LAYERS.replace("return gated", "raise ValueError('no such gate')\n        return gated"),
        )
        error = self.trace(self.here / "model.py", code=1)["untraceable"]
        self.assertIn("no such gate", error["message"])
        self.assertTrue(any(line.startswith("layers.py:13 ") for line in error["traceback"]), error)


class Packages(Folder):
    """A task inside a package, which imports relatively."""

    def setUp(self):
        super().setUp()
        relative = TASK.replace("from layers import", "from .layers import")
        relative = relative.replace("import torch\n", "import torch\nfrom ..common import TWICE\n", 1)
        relative = relative.replace("self.gate(x)\n", "self.gate(x) * TWICE\n")
        self.model = self.write("lib/nets/gated/model.py", relative)
        self.write("lib/nets/__init__.py", "from .common import TWICE\n")
        self.write("lib/nets/common.py", "from .gated import sizes\n\nTWICE = sizes.TWO\n")
        self.write("lib/nets/gated/__init__.py", "")
        self.write("lib/nets/gated/sizes.py", "TWO = 2.0\n")
        self.write("lib/nets/gated/layers.py", LAYERS.replace("from parts.", "from .parts."))
        for file in ("__init__", "activations", "constants"):
            (self.home / "lib/nets/gated/parts").mkdir(exist_ok=True)
            (self.here / f"parts/{file}.py").rename(self.home / f"lib/nets/gated/parts/{file}.py")
        self.write("lib/private.py", "KEY = 'PRIVATE'\n")

    def test_every_command(self):
        self.trace(self.model)
        self.trace("model.py", folder=self.model.parent)
        candidate = CANDIDATE.replace("from layers", "from .layers").replace("from parts", "from .parts")
        candidate = candidate.replace("+ shift\n", "+ shift\n    y = y * 2.0\n")
        header = '"""Mine.\n\nreference: model.py\nverdict: Verified\npolicy: hybrid\n"""\n'
        mine = self.write("lib/nets/gated/mine.py", header + candidate)
        verdict = self.run_nereid("verify", self.model, mine, "--policy", "hybrid", "--device", "cpu",
            "--trials", "1")  # fmt: skip
        self.assertIn("Verified", verdict.stdout)
        done = subprocess.run(
            [NEREID, "mutate", mine, "-o", self.root / "mutants", "--each", "2", "--rewrites", "0", "--jobs",
                "1"],
            capture_output=True, text=True, env={**os.environ, "HOME": str(self.home)},
        )  # fmt: skip
        self.assertNotIn("left out", done.stderr)
        report = json.loads((self.root / "mutants/report.json").read_text())
        self.assertEqual(report["not_loaded"], [], report)
        out = self.root / "fast.py"
        self.run_nereid("optimize", self.model, "-o", out, "--policy", "hybrid", "--first", "--device",
                        "cpu", "--trials", "1", "--budget", "270s",
                        "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.assertNotIn("from .", out.read_text())  # it works outside of the package
        code = (
            "import torch, fast; from nets.gated.model import Model; a, b = Model(8), fast.ModelNew(8); "
            "b.load_state_dict(a.state_dict()); x = torch.randn(4, 8); "
            "print(torch.allclose(a(x), b(x), atol=1e-5))"
        )
        with_grad = code.replace("x = torch", "torch.set_grad_enabled(False); x = torch")
        python = subprocess.run(preloaded.command("torch", "-c", with_grad), capture_output=True, text=True,
            env={**os.environ, "TRITON_INTERPRET": "1",
                "PYTHONPATH": f"{self.root}:{self.home / 'lib'}"})  # fmt: skip
        self.assertEqual(python.stdout.strip(), "True", python.stderr)

    def test_what_stays_out_of_a_package(self):
        self.model.write_text("from .. import private\n" + self.model.read_text())
        self.assertIn("private", self.trace(self.model, code=1)["untraceable"]["message"])
        self.model.write_text("from ...lib import private\n" + self.model.read_text())
        message = self.trace(self.model, code=1)["untraceable"]["message"]
        self.assertIn("has an __init__.py", message)
        self.model.write_text("import private\nraise ValueError(private.KEY)\n")
        done = self.run_nereid("trace", self.model, code=1)
        self.assertNotIn("PRIVATE", done.stdout + done.stderr)


class WhatStaysOut(Folder):
    def test_a_candidate_reads_nothing_that_the_task_does_not_import(self):
        self.write(".ssh/id_rsa", "PRIVATE")
        self.write("model.py", "import torch\n" + TASK.replace("from layers import Gate",
            "Gate = torch.nn.Linear").replace("Gate(dim)", "Gate(dim, dim)"))  # fmt: skip
        self.write("settings.py", "KEY = 'PRIVATE'\n")
        for text in (
            "import settings\nraise ValueError(settings.KEY)\n",
            f"raise ValueError(open({str(self.home / '.ssh/id_rsa')!r}).read())\n",
            f"raise ValueError(open({str(self.home / 'settings.py')!r}).read())\n",
            "import sys\nsys.path.append('/'); import home.settings\nraise ValueError(home.settings.KEY)\n",
        ):
            mine = self.write("mine.py", text + CANDIDATE)
            done = self.run_nereid("verify", self.home / "model.py", mine, "--device", "cpu", code=1)
            self.assertIn("Untraceable", done.stdout)
            self.assertNotIn("PRIVATE", done.stdout + done.stderr)

    def test_the_home_directory_the_root_and_links_are_refused(self):
        model = self.here / "model.py"
        for folder, said in (
            (self.home, "the home directory"),
            (self.root, "above the home directory"),
            ("/", "the root"),
        ):
            for command in ("trace", "lower"):
                done = self.run_nereid(command, model, "--include", folder, code=2)
                self.assertIn(said, done.stderr)
        self.assertIn("No such file", self.run_nereid("trace", model, "--include", "none", code=2).stderr)
        secret = self.write("other/key.py", "KEY = 1\n")
        (self.here / "key.py").symlink_to(secret)
        self.write("project/model.py", "import key\n" + TASK)
        self.assertIn("got a link to", self.run_nereid("trace", model, code=2).stderr)


class Files(Folder):
    def test_a_file_that_is_read_is_named_and_can_be_included(self):
        read = (
            "import json, os\nSIZES = json.load(open(os.path.join(os.path.dirname(__file__),"
            " 'sizes.json')))\n"
        )
        model = self.write("project/model.py", read + TASK.replace("return [8]", "return [SIZES['dim']]"))
        sizes = self.write("project/sizes.json", '{"dim": 8}')
        error = self.trace(model, code=1)["untraceable"]
        self.assertEqual(error["type"], "FileNotFoundError")
        self.assertIn("--include sizes.json", error["message"])
        self.trace(model, "--include", sizes)
        mine = self.write("mine.py", read + CANDIDATE)
        done = self.run_nereid(
            "verify",
            model,
            mine,
            "--include",
            sizes,
            "--policy",
            "hybrid",
            "--device",
            "cpu",
            "--trials",
            "1",
        )
        self.assertIn("Verified", done.stdout)

    def test_a_missing_package_is_named_with_its_environment(self):
        model = self.write("project/model.py", "import einops_of_another\n" + TASK)
        message = self.trace(model, code=1)["untraceable"]["message"]
        for part in ("einops_of_another", "bin/python", "--include", "install"):
            self.assertIn(part, message)
        model = self.write("project/model.py", "from .layers import Gate\n" + TASK)
        self.assertIn("has an __init__.py", self.trace(model, code=1)["untraceable"]["message"])


class Expressions(Folder):
    def test_a_module_without_a_tasks_functions(self):
        layers = self.here / "layers.py"
        flags = ["--class", "Gate", "--init", "[8]", "--inputs", "[torch.randn(4, 8)]"]
        self.trace(layers, *flags)
        self.assertIn("@triton.jit", self.run_nereid("lower", layers, *flags).stdout)
        mine = self.write("mine.py", CANDIDATE)
        done = self.run_nereid(
            "verify",
            layers,
            mine,
            *flags,
            "--include",
            self.here,
            "--policy",
            "hybrid",
            "--device",
            "cpu",
            "--trials",
            "1",
        )
        self.assertIn("Verified", done.stdout)
        out = self.root / "fast.py"
        self.run_nereid("optimize", layers, "-o", out, *flags, "--policy", "hybrid", "--first", "--device",
                        "cpu", "--trials", "1", "--budget", "270s",
                        "--keep-slower", "--no-store", "--proposers", "compiler")  # fmt: skip
        self.assertIn("class ModelNew", out.read_text())

    def test_they_replace_the_files_own(self):
        model = self.here / "model.py"
        values = self.trace(model, "--inputs", "{'x': torch.randn(3, 5)}", "--init", "{'dim': 5}")["values"]
        self.assertIn([3, 5], [value["n"] for value in values])
        plain = self.write("project/plain.py", "from torch.nn import Softmax as Best\n")
        self.trace(plain, "--class", "Best", "--init", "[-1]", "--inputs", "torch.randn(2, 3)")

    def test_wrong_ones_are_bad_input(self):
        layers, model = self.here / "layers.py", self.here / "model.py"
        for flags, said in (
            (["--class", "Gate; import os"], "expected the name of a class"),
            (["--inputs", "1\nimport os"], "in one line"),
        ):
            self.assertIn(said, self.run_nereid("lower", layers, *flags, code=2).stderr)
        self.assertIn("'Model' of its own", self.run_nereid("lower", model, "--class", "Gate", code=2).stderr)
        self.assertIn(
            "no function get_inputs", self.run_nereid("lower", layers, "--class", "Gate", code=1).stderr
        )
        self.assertIn(
            "SyntaxError",
            self.run_nereid("lower", layers, "--class", "Gate", "--inputs", "[1", code=1).stderr,
        )
        pairs = self.write("pairs.jsonl", "")
        self.assertIn(
            "expected one pair", self.run_nereid("verify", "--batch", pairs, "--init", "[8]", code=2).stderr
        )


if __name__ == "__main__":
    unittest.main()
