"""`nereid lower`: what the compiler writes for the tasks below is Verified under the strict policy.

python tests/lower_test.py NEREID [TASK...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TASKS = """abs_sqrt add_relu argmax batch_norm_eval bmm clamp conv2d depthwise_conv2d gelu layer_norm
    linear_gelu log_softmax logsumexp matmul_fp16 matmul_odd mean_all mlp norm_linear relu rms_norm row_sum
    softmax swiglu transpose_scale var_rows""".split()


# What a window or a concatenation reads of a view is a plain sum, and where it reads nothing is said by the
# load's mask: the program, and a line of what is written for it.
LINES = {
    "torch.cat([-x[..., 16:], x[..., :16]], dim=-1)": (
        "[6, 31, 33]",
        "x_1 = tl.load(x_ptr + (i // 33) * 33 + w_1, mask=(i < 6 * 31 * 33) & (w_1 >= 0), other=0)",
    ),
    "torch.nn.functional.max_pool2d(x.view(8, 1, 40, 30), 3, 1, 1)": (
        "[8, 1200]",
        (
            "x = tl.load(x_ptr + (i // (40 * 30)) * 1200 + w, mask=(i < 8 * 40 * 30) & and_1 & (w >= 0),"
            ' other=float("-inf"))'
        ),
    ),
    "torch.nn.functional.max_pool2d(x, 3, 2, 1)": (
        "[2, 3, 41, 30]",
        (
            "x_1 = tl.load(x_ptr + (i // (21 * 15)) * (41 * 30) + (i % 15) * 2 + h * 30, mask=(i < 2 * 3 * 21"
            ' * 15) & (h >= 0), other=float("-inf"))'
        ),
    ),
    "torch.nn.functional.pad(x.view(2, 5, 7, 4).transpose(1, 2)[:, 1:], (1, 1))": (
        "[70, 4]",
        (
            "pad = tl.load(x_ptr + (i // (6 * 5 * 6)) * (35 * 4) + ((i // 6) % 5) * (7 * 4) + ((i // (5 * 6))"
            " % 6) * 4 + 4 + w, mask=(i < 2 * 6 * 5 * 6) & (w >= 0) & (w < 4), other=0)"
        ),
    ),
    "x.flip(0)": (
        "[5, 7, 125]",
        (
            "x = tl.load(x_ptr + -(i // (7 * 125)) * (7 * 125) + (i % (7 * 125)) + (5 - 1) * 7 * 125, mask=i"
            " < 5 * 7 * 125, other=0)"
        ),
    ),
}
PROGRAM = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {}


def get_inputs():
    return [torch.randn({})]


def get_init_inputs():
    return []
"""


def joined(code):
    """Without spaces and line breaks, and the commas before these."""
    return "".join(code.split()).replace(",)", ")")


def plain_sums(nereid, folder):
    """Files of these programs; each has its line."""
    files = []
    for number, (program, (sizes, line)) in enumerate(LINES.items()):
        file, written = folder / f"view{number}.py", folder / f"view{number}.new.py"
        file.write_text(PROGRAM.format(program, sizes))
        subprocess.run([nereid, "lower", file, "-o", written], check=True)
        code = written.read_text().partition("# ---- Guard")[0]
        assert joined(line) in joined(code), (program, line, code)
        files.append(str(file))
    return files


def lowered(nereid, folder, name, text):
    file = folder / f"{name}.py"
    file.write_text(text)
    done = subprocess.run([nereid, "lower", str(file), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return file, json.loads(done.stdout)


def complex_numbers_stay(nereid, folder):
    """Triton has no complex type: the operator stays PyTorch's, and the plan says why."""
    _, line = lowered(
        nereid, folder, "complex", PROGRAM.format("x * x.conj() + 1", "8, 16, dtype=torch.complex64")
    )
    assert not line["kernels"] and "complex" in line["kept"][0] and "@triton.jit" not in line["code"], line


def layers_share_kernels(nereid, folder):
    """Equal layers are launches of the same kernels, with other arguments."""
    text = PROGRAM.format("self.layers(x)", "6, 32").replace(
        "class Model(nn.Module):\n",
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers ="
        " nn.Sequential(*(nn.Sequential(nn.Linear(32, 32), nn.LayerNorm(32), nn.GELU()) for _ in"
        " range(5)))\n\n",
    )
    file, line = lowered(nereid, folder, "layers", text)
    assert len(line["kernels"]) >= 5 and line["code"].count("@triton.jit\ndef linear") == 1, line["code"]
    assert "Launched 5 times" in line["plan"], line["plan"]
    written = folder / "layers_new.py"
    written.write_text(line["code"])
    done = subprocess.run(
        [nereid, "verify", str(file), str(written), "--policy", "strict", "--device", "cpu"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("Verified"), done.stdout + done.stderr


def main():
    nereid, tasks = sys.argv[1], sys.argv[2:] or TASKS
    files = [str(HERE / "tasks" / f"{task}.py") for task in tasks]
    with tempfile.TemporaryDirectory() as folder:
        written = pathlib.Path(folder) / "written"
        if not sys.argv[2:]:
            files += plain_sums(nereid, pathlib.Path(folder))
        # A file that cannot be read does not end the others'.
        missing = str(pathlib.Path(folder) / "missing.py")
        lowered = subprocess.run(
            [nereid, "lower", missing, *files, "-o", str(written), "--json"], capture_output=True, text=True
        )
        assert lowered.returncode == 1, lowered.stderr
        first, *lines = map(json.loads, lowered.stdout.splitlines())
        assert "missing.py" in first["not_lowered"] and len(lines) == len(files), first
        for line in lines:
            assert line["kernels"], line
        pairs = pathlib.Path(folder) / "pairs.jsonl"
        with open(pairs, "w") as out:
            for file in files:
                name = pathlib.Path(file).name
                print(json.dumps({"id": name, "reference": file, "candidate": str(written / name)}), file=out)
        verdicts = pathlib.Path(folder) / "verdicts.jsonl"
        subprocess.run(
            [
                nereid,
                "verify",
                "--batch",
                str(pairs),
                "-o",
                str(verdicts),
                "--policy",
                "strict",
                "--device",
                "cpu",
            ],
            check=False,
            capture_output=True,
        )
        found = {v["id"]: v for v in map(json.loads, open(verdicts))}
        wrong = {name: (v["verdict"], v["reason"]) for name, v in found.items() if v["verdict"] != "Verified"}
        for name, why in wrong.items():
            print(name, *why)
        assert len(found) == len(files), f"{len(found)} verdicts for {len(files)} tasks"
        assert not wrong, f"{len(wrong)} of {len(files)} are not Verified"
        # What has no kernel here stays PyTorch's, and the plan says so.
        kept = subprocess.run(
            [nereid, "lower", str(HERE / "tasks" / "matrix_exp.py"), "--json"], capture_output=True, text=True
        )
        line = json.loads(kept.stdout)
        assert (
            kept.returncode == 0
            and "aten::linalg_matrix_exp" in line["kept"][0]
            and "Left to PyTorch" in line["plan"]
        ), kept
        complex_numbers_stay(nereid, pathlib.Path(folder))
        layers_share_kernels(nereid, pathlib.Path(folder))
    print(f"{len(files)} of {len(files)} Verified under the strict policy")


main()
