"""Bit-identity: a module's trace, replayed on the CPU, gives what PyTorch gives eagerly, to the last bit."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch  # noqa: E402
from eager import seed_of  # noqa: E402
from layers import ROUNDED  # noqa: E402
from replay import Replay, values_in  # noqa: E402

from nereid._tracer import tracer  # noqa: E402

HEAD = (
    "import math\nimport torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom torch import"
    " randn, rand, randint, ones, zeros, arange\n"
)


def source_of(init, forward, inputs):
    """A task's source: `init` is the body of the constructor, `forward` an expression or statements over
    `self` and the inputs a, b, c..."""
    init = "\n".join("        " + line for line in (init or "pass").split("\n"))
    body = forward if "return" in forward else f"return {forward}"
    body = "\n".join("        " + line for line in body.split("\n"))
    names = "abcdefgh"[: count_inputs(inputs)]
    return (f"{HEAD}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{init}\n"
            f"    def forward(self{''.join(', ' + name for name in names)}):\n{body}\n\n"
            f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return "
            f"[]\n")  # fmt: skip


def count_inputs(inputs):
    import ast

    return len(ast.parse(f"[{inputs}]", mode="eval").body.elts)


def trace(source, name, class_name="Model", reference=None, draw=0):
    return tracer.handle(
        {
            "source": source,
            "path": f"{name}.py",
            "class": class_name,
            "draw": draw,
            "globals": {},
            "calls": 3,
            "reference": reference,
        }
    )


def pins_of(trace):
    """{"CALL.PATH": data} of the integer inputs that the trace holds for."""
    pins, storages, values = {}, trace["storages"], trace["values"]
    for phase in trace["phases"]:
        if phase["phase"] != "make_inputs":
            continue
        for path, id in paths(phase["inputs"]):
            storage = storages[values[id]["s"]]
            if storage.get("pinned"):
                pins[f"{phase['call']}.{path}"] = storage["data"]
    return pins


def paths(arg, path=""):
    if isinstance(arg, dict) and "v" in arg:
        yield path, arg["v"]
    items = enumerate(arg) if isinstance(arg, list) else ()
    if isinstance(arg, dict) and "tuple" in arg:
        items = enumerate(arg["tuple"])
    elif isinstance(arg, dict) and "dict" in arg:
        items = arg["dict"]
    elif isinstance(arg, dict) and "object" in arg:
        items = arg["object"]["items"]
    for key, item in items:
        yield from paths(item, f"{path}.{key}" if path else str(key))


def same(ours, theirs, rounded=False):
    """None, or where and how two outputs differ."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, torch.Tensor):
            return f"{type(ours).__name__} for a tensor"
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{list(ours.shape)} {ours.dtype} for {list(theirs.shape)} {theirs.dtype}"
        mine, its = ours.contiguous().flatten(), theirs.contiguous().flatten()
        if mine.is_complex():
            mine, its = (
                torch.view_as_real(mine.resolve_conj()).flatten(),
                torch.view_as_real(its.resolve_conj()).flatten(),
            )
        if rounded and torch.allclose(mine, its, rtol=1e-5, atol=1e-6):
            return None
        if mine.numel() and not torch.equal(mine.view(torch.uint8), its.view(torch.uint8)):
            wrong = (mine.view(torch.uint8) != its.view(torch.uint8)).sum()
            return (
                f"{wrong} of {mine.numel() * mine.element_size()} bytes differ; {mine[:3].tolist()} for"
                f" {its[:3].tolist()}"
            )
        return None
    if isinstance(theirs, (list, tuple)):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return f"{ours!r:.80} for {theirs!r:.80}"
        return next((why for why in map(same, ours, theirs) if why), None)
    if isinstance(theirs, dict):
        if not isinstance(ours, dict) or list(ours) != list(theirs):
            return f"keys {list(ours)} for {list(theirs)}"
        return next((why for why in (same(ours[key], theirs[key]) for key in theirs) if why), None)
    if isinstance(theirs, float) and theirs != theirs:
        return None if ours != ours else f"{ours!r} for nan"
    return (
        None
        if ours == theirs or isinstance(ours, str) and ours.startswith("<")
        else f"{ours!r:.80} for {theirs!r:.80}"
    )


def replay_outputs(document):
    """What each call gives by this folder's own replayer, or what it cannot do."""
    try:
        with torch.utils._python_dispatch._disable_current_modes():
            return Replay(document).run(seed_of)
    except Exception as error:
        return f"replay: {type(error).__name__}: {error}"[:600]


def differences(cases, replays):
    """{name: what is wrong} of [{"name", "source", "pins"}] and what replay_outputs said of each; a right one
    is left out."""
    wrong = {name: outputs for name, outputs in replays.items() if isinstance(outputs, str)}
    for name, outputs in run_eager([case for case in cases if case["name"] not in wrong]).items():
        if isinstance(outputs, str):
            wrong[name] = f"eager: {outputs}"
            continue
        for call, (ours, theirs) in enumerate(zip(replays[name], outputs, strict=True)):
            why = same(ours, theirs, name in ROUNDED)
            if why:
                wrong[name] = f"call {call}: {why}"
                break
    return wrong


def run_eager(cases):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "cases.json").write_text(json.dumps(cases))
        subprocess.run(
            [sys.executable, str(HERE / "eager.py"), str(folder / "cases.json"), str(folder / "out.pt")],
            check=True,
        )
        with torch.utils._python_dispatch._disable_current_modes():
            return torch.load(folder / "out.pt", weights_only=False, map_location="cpu")


def validate(trace):
    """Errors in a trace's own terms: every view inside its storage, every id in range."""
    problems, values, storages = [], trace["values"], trace["storages"]
    for id, value in enumerate(values):
        if 0 in value["n"]:
            continue
        last = value["o"] + 1 + sum((n - 1) * d for n, d in zip(value["n"], value["d"]))
        width = {"b": 1, "u": 0, "i": 0, "f": 0, "c": 0}
        del width
        if last * element_bytes(value["t"]) > storages[value["s"]]["bytes"]:
            problems.append(f"value {id} ends after storage {value['s']}")
    for phase in trace["phases"]:
        for step in phase["steps"]:
            if "call" in step and any(not 0 <= id < len(values) for id in values_in(step.get("result"))):
                problems.append(f"{step['call']}: a value out of range")
    return problems


def element_bytes(name):
    from replay import DTYPES

    return DTYPES[name].itemsize
