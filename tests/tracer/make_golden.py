"""Writes tests/golden/traces/*.json again: traces of the modules in this folder, for tests of what reads
traces."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from nereid._tracer import tracer  # noqa: E402
from nereid._tracer.command import reference_inputs  # noqa: E402

PAIRS = [
    ("gelu_linear", "gelu_linear_candidate"),
    ("softmax_candidate", "softmax_candidate"),
    ("ragged", None),
]


def trace(name, class_name, reference):
    path = ROOT / "tests/tracer/modules" / f"{name}.py"
    answer = tracer.handle({"source": path.read_text(), "path": path.name, "class": class_name, "draw": 0,
                            "globals": {}, "calls": 3,
                            "reference": reference})  # fmt: skip
    answer["trace"]["seconds"] = 0.0
    return answer["trace"]


def write(name, document):
    (ROOT / "tests/golden/traces" / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")


def main():
    for task, candidate in PAIRS:
        reference = trace(task, "Model", None)
        write(f"{task}.Model", reference)
        if candidate:
            write(f"{candidate}.ModelNew", trace(candidate, "ModelNew", reference_inputs(reference)))


if __name__ == "__main__":
    main()
