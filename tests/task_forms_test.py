"""The forms that a task's file may have: each gets the compiler's kernels, verified, for its sizes and for
any batch.

tests/task_forms_test.py PATH/TO/nereid [FORM...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from sample import sampled

NEREID = str(pathlib.Path(sys.argv.pop(1)).resolve())

GATE = """
class Gate(nn.Module):
    def __init__(self, dim, scale=1.0):
        super(Gate, self).__init__()
        self.up, self.scale = nn.Linear(dim, dim), scale

    def forward(self, x, bias=None, *, gain=2.0):
        y = torch.sigmoid(self.up(x)) * x.reshape(x.shape[0], -1) * (self.scale * gain)
        return y if bias is None else y + bias

"""
ONE, TWO = "[torch.randn(4, 8)]", "[torch.randn(4, 8), torch.randn(8)]"

# {name: (the module's text, get_inputs, get_init_inputs, also for any batch)}
FORMS = {
    "alias": (GATE + "Model = Gate", TWO, "[8]", True),
    "alias_of_an_alias": (GATE + "Best = Gate\nModel = Best  # the best", ONE, "[8]", False),
    "subclass": (GATE + "class Model(Gate):\n    pass", ONE, "[8]", True),
    "subclass_of_a_subclass": (GATE + "class Middle(Gate):\n    pass\n\n\nclass Model(Middle):\n    extra "
                                      "= 1", TWO, "[8]", False),
    "subclass_with_a_mixin": (
        "class Says:\n    def says(self):\n        return 2.0\n" + GATE + "class Model(Says, Gate):\n    "
                                                                          "pass", ONE, "[8]", False
    ),
    "sequential": (
        "class Model(nn.Sequential):\n    def __init__(self, dim):\n"
        "        super().__init__(nn.Linear(dim, dim), nn.ReLU())",
        ONE, "[8]", True,
    ),
    "imported_base": ("class Model(nn.Linear):\n    pass", ONE, "[8, 5]", True),
    "imported_base_by_keywords": (
        "class Model(nn.LayerNorm):\n    pass", ONE, "{'normalized_shape': 8, 'eps': 1e-3}", False,
    ),
    "imported_base_with_a_forward": (
        "class Model(nn.Linear):\n    def forward(self, x):\n"
        "        return torch.relu(super().forward(x)) + x",
        ONE, "[8, 8]", True,
    ),
    "partial_of_an_import": ("import functools\nModel = functools.partial(nn.LayerNorm, eps=1e-3)", ONE,
        "[8]", False),
    "imported_class": ("from torch.nn import LayerNorm as Model", ONE, "[8]", False),
    "alias_of_an_import": ("Model = nn.LayerNorm", ONE, "[8]", True),
    "function": (GATE + "def Model(dim):\n    return nn.Sequential(Gate(dim), nn.Tanh())", ONE, "[8]", True),
    "lambda": ("Model = lambda dim: nn.Sequential(nn.Linear(dim, dim), nn.GELU())", ONE, "[8]", False),
    "partial": (GATE + "import functools\nModel = functools.partial(Gate, 8, scale=3.0)", ONE, "[]", False),
    "single_tensor": (GATE + "Model = Gate", "torch.randn(4, 8)", "[8]", True),
    "single_number": (GATE + "class Model(Gate):\n    pass", "torch.randn(4, 8)", "8", False),
    "tuple": (GATE + "Model = Gate", "(torch.randn(4, 8), torch.randn(8))", "(8,)", False),
    "dictionary": (GATE + "Model = Gate", "{'x': torch.randn(4, 8), 'bias': torch.randn(8)}",
        "{'dim': 8, 'scale': 2.0}", True),
    "dictionary_in_another_order": (
        GATE + "Model = Gate", "{'gain': 3.0, 'bias': torch.randn(8), 'x': torch.randn(4, 8)}", "[8]", False
    ),
    "dictionary_of_keywords": (
        "class Model(nn.Module):\n    def forward(self, **named):\n"
        "        return torch.softmax(named['a'] - named['b'], -1)",
        "{'a': torch.randn(4, 8), 'b': torch.randn(4, 8)}", "[]", False,
    ),
    "dictionary_of_an_import": (
        "Model = nn.Bilinear", "{'input1': torch.randn(4, 8), 'input2': torch.randn(4, 6)}", "[8, 6, 3]",
        False
    ),
    "numbers_that_are_the_batch_too": (
        "class Model(nn.Module):\n    def forward(self, x):\n"
        "        return x.softmax(-1), torch.erf(x) + 1, x * 16, x.mean(1) * 0.0625",
        "[torch.randn(16, 8)]", "[]", True,
    ),
    "nested": (
        "class Model(nn.Module):\n    def forward(self, batch, rest):\n"
        "        return torch.tanh(batch['x'] * batch['y'][0]) + rest[1]",
        "[{'x': torch.randn(4, 8), 'y': [torch.randn(8)]}, (1, torch.randn(4, 8))]", "[]", False,
    ),
}  # fmt: skip


def written(folder, name):
    module, inputs, init, _ = FORMS[name]
    path = pathlib.Path(folder) / f"{name}.py"
    path.write_text(
        f"import torch\nfrom torch import nn\n\n\n{module}\n\n\ndef get_inputs():\n    return {inputs}\n\n\n"
        f"def get_init_inputs():\n    return {init}\n"
    )
    return path


def optimized(path, *more):
    """(the answer as JSON or None, stderr)."""
    out = path.with_suffix(".out.py")
    done = subprocess.run(
        [NEREID, "optimize", path, "-o", out, "--json", "--policy", "hybrid", "--first", "--device", "cpu",
            "--trials", "1",
         "--keep-slower", "--no-store", "--seed", "3", "--budget", "270s", *more],
        capture_output=True, text=True, env={**os.environ, "NEREID_KEEP_WARM": "60"},
    )  # fmt: skip
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return None, done.stderr


class Forms(unittest.TestCase):
    def check(self, name, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = written(folder, name)
            answer, said = optimized(path, *more)
            self.assertIsNotNone(answer, said)
            self.assertEqual(
                answer["verdict"], "Verified", (answer.get("reason"), answer.get("declined"), said)
            )
            self.assertTrue(answer["output"], said)
            text = path.with_suffix(".out.py").read_text()
            self.assertIn("@triton.jit", text)
            return " ".join(text.replace("\n# ", " ").split())

    def test_for_the_tasks_own_sizes(self):
        # Half of the forms, and some of those that the other test has.
        own = sampled([name for name, form in FORMS.items() if not form[3]], 2)
        both = sampled([name for name, form in FORMS.items() if form[3]], 8)
        for name in ONLY or own + both:
            with self.subTest(name):
                self.check(name, "--proposers", "compiler")

    def test_for_any_batch(self):
        both = [name for name, form in FORMS.items() if form[3]]
        for name in [name for name in both if name in ONLY] if ONLY else sampled(both, 4):
            with self.subTest(name):
                said = self.check(name, "--dynamic", "batch", "--proposers", "compiler")
                self.assertRegex(said, r"for any batch from \d+ to \d+")


if __name__ == "__main__":
    ONLY = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
