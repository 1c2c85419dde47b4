"""Every task and every honest candidate of tests/ is traced, each in a fork of a warmed process; so are
torchvision's models where it is installed (three of them without NEREID_TEST_PART=all)."""

import importlib.util
import json
import os
import re
import unittest

from forked import ROOT, References, forked, request, tracer, word


def makes_tensors(trace):
    """Views of what is given need no kernel."""
    return any(storage["role"] == "temporary" for storage in trace["storages"])


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tracer.warm()
        cls.references = References()

    def check(self, wrong, count):
        self.assertGreater(count, 0)
        self.assertEqual({}, wrong, f"{len(wrong)} of {count} are not traced")

    def test_tasks(self):
        tasks = sorted((ROOT / "tests/tasks").glob("*.py"))
        wrong = {
            task.name: word(answer)[:400]
            for task in tasks
            if "trace" not in (answer := self.references.answer(task)[0])
        }
        self.check(wrong, len(tasks))

    def test_honest_candidates(self):
        wrong, candidates = {}, sorted((ROOT / "tests/honest").glob("*.py"))
        for path in candidates:
            reference = (
                path.parent / re.search(r"^reference:\s*(\S+)", path.read_text(), re.M).group(1)
            ).resolve()
            answer, _ = forked(request(path, "ModelNew", self.references.inputs(reference)))
            if "trace" not in answer:
                wrong[path.name] = word(answer)[:400]
            elif not answer["trace"]["kernels"] and makes_tensors(answer["trace"]):
                wrong[path.name] = "no kernel"
        self.check(wrong, len(candidates))


MODELS = ["googlenet", "resnet18", "vit_b_32"]
if os.environ.get("NEREID_TEST_PART") == "all":  # swin_t and mobilenet are in `modules_few`, too
    MODELS += ["densenet121", "mobilenet_v3_small", "swin_t"]


@unittest.skipUnless(importlib.util.find_spec("torchvision"), "torchvision is not installed")
class Torchvision(unittest.TestCase):
    def test_models(self):
        tracer.warm()
        wrong = {}
        for name in MODELS:
            source = (f"import torch, torchvision\nclass Model(torch.nn.Module):\n    def __init__(self):\n"
                      f"        super().__init__()\n"
                      f"        self.m = torchvision.models.{name}(weights=None).eval()\n"
                      f"    def forward(self, x):\n        return self.m(x)\n"
                      f"def get_inputs():\n    return [torch.randn(1, 3, 224, 224)]\ndef get_init_inputs():\n"
                      f"    return []\n")  # fmt: skip
            answer, _ = forked(
                {
                    "source": source,
                    "path": f"{name}.py",
                    "class": "Model",
                    "draw": 0,
                    "globals": {},
                    "calls": 3,
                    "reference": None,
                },
                120,
            )
            if "trace" not in answer:
                wrong[name] = word(answer)[:500]
        self.assertEqual({}, wrong, json.dumps(wrong)[:2000])


if __name__ == "__main__":
    unittest.main()
