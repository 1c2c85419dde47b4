"""Commands of the program that are one call: trace, lower, synth."""

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import _program
from ._exceptions import InputError


def trace(module: str | Path, *, timeout: float | None = None) -> dict[str, Any]:
    """What a task computes, operator by operator, as docs/trace_format.md describes. Nothing is computed.

    module    a file with `class Model`, `get_inputs()` and `get_init_inputs()`, or its source text

    Raises InputError where the module cannot be traced."""
    with task_file(module) as path:
        return _program.parse("trace", _program.run("trace", path, "--json", timeout=timeout))


def lower(module: str | Path, *, timeout: float | None = None, **options: Any) -> str:
    """Source text of `class ModelNew` with the compiler's own kernels for a task. They are not judged: see
    `nereid.verify`.

    options    options of `nereid lower` by their names: target="sm_90", fallback=True

    Raises InputError where the task has operators without a kernel."""
    with task_file(module) as path, tempfile.TemporaryDirectory(prefix="nereid-") as folder:
        out = os.path.join(folder, "lowered.py")
        _program.run("lower", path, "-o", out, *flags(options), timeout=timeout)
        return Path(out).read_text()


def synth(
    count: int = 1, *, operators: int = 5, seed: int = 0, timeout: float | None = None, **options: Any
) -> list[dict[str, Any]]:
    """`count` random programs of `operators` operators (docs/synth.md), each an object with its `code`, a
    task. The same seed gives the same programs.

    options    options of `nereid synth` by their names: max_work="2^21", free_sizes=0.5, ..."""
    with tempfile.TemporaryDirectory(prefix="nereid-") as folder:
        out = os.path.join(folder, "programs.jsonl")
        more = {"operators": operators, "count": count, "seed": seed, **options}
        _program.run("synth", "-o", out, *flags(more), timeout=timeout)
        return [json.loads(line) for line in Path(out).read_text().splitlines()]


@contextmanager
def task_file(module):
    """The path of a task that is given as a path or as text."""
    if isinstance(module, os.PathLike) or (isinstance(module, str) and "\n" not in module):
        if not Path(module).is_file():
            raise InputError(f"{module}: no such file")
        yield str(module)
        return
    if not isinstance(module, str):
        raise InputError(f"expected a path or source text, got a {type(module).__name__}")
    with tempfile.TemporaryDirectory(prefix="nereid-") as folder:
        path = Path(folder) / "model.py"
        path.write_text(module)
        yield str(path)


def flags(options):
    """Options of the command line from keywords: budget="60s" is --budget 60s, fallback=True is
    --fallback."""
    found = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is True:
            found.append(name)
        elif value is not None and value is not False:
            found += [name, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return found
