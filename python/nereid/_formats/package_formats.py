"""`nereid package`: files that `nereid optimize` and `nereid lower` write, in the formats of others; runs
none of their code.

    python package_formats.py FORMAT PATH FOLDER OPTIONS      prints {"files": [...], "skipped": [...]}

OPTIONS is JSON: {"name", "version", "license", "author", "definition", "operator", "backends", "hardware"}.
"""

import ast
import datetime
import importlib.metadata
import json
import math
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # `python -I` leaves it out
from text_files import NotWritten, limited_text, write_text  # noqa: E402

LAYERS = '''"""Layers for `kernels.kernelize`: verified kernels where they hold, else the layer's forward."""

import warnings
import weakref

import torch

{imports}

_built = weakref.WeakKeyDictionary()  # layer -> its kernels' module, or why there is none
_warned = set()


def _plain(value, depth=0):
    """What of a value can be compared; of what cannot, a text that is unlike any other's."""
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)):
        return value
    if depth < 6 and isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    if depth < 6 and isinstance(value, dict):
        return {{str(key): _plain(item, depth + 1) for key, item in value.items()}}
    if hasattr(value, "__qualname__"):
        return value.__qualname__
    if depth < 6 and isinstance(getattr(value, "__dict__", None), dict):
        return {{"": type(value).__name__, **_plain(vars(value), depth + 1)}}
    return repr(value)


def _settings(module):
    """What a module's constructor left in it besides tensors and submodules."""
    found = {{}}
    for path, part in module.named_modules():
        for key, value in vars(part).items():
            if not key.startswith("_") and key not in ("training", "forward"):
                found[f"{{path}}.{{key}}" if path else key] = _plain(value)
    return found


def _build(file, layer):
    """The kernels' module on the layer's parameters, buffers and submodules, or a text: why there is none."""
    arguments = file.VERIFIED["constructor"]
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        made = file.ModelNew(**arguments) if isinstance(arguments, dict) else file.ModelNew(*arguments)
    want, got = _settings(made), _settings(layer)
    for name in sorted(want.keys() | got.keys()):
        if want.get(name, "none") != got.get(name, "none"):
            return f"attribute {{name}}: expected {{want.get(name, 'none')}}, got {{got.get(name, 'none')}}"
    types = [{{path: type(m).__name__ for path, m in top.named_modules() if path}} for top in (made, layer)]
    if types[0] != types[1]:
        return f"expected the submodules {{types[0]}}, got {{types[1]}}"
    for kind in ("_parameters", "_buffers", "_modules"):
        if vars(made)[kind].keys() != vars(layer)[kind].keys():
            return f"expected {{sorted(vars(made)[kind])}} in {{kind}}, got {{sorted(vars(layer)[kind])}}"
        vars(made)[kind] = vars(layer)[kind]
    return made


def _run(file, layer, *arguments, **named):
    made = _built.get(layer)
    if made is None:
        try:
            made = _build(file, layer)
        except Exception as error:
            made = f"{{type(error).__name__}}: {{error}}"
        _built[layer] = made
    why = made
    if not isinstance(made, str):
        vars(made)["training"] = layer.training  # the guard compares modes with those that were verified
        if any(m._forward_hooks or m._forward_pre_hooks for m in layer.modules() if m is not layer):
            return type(layer).forward(layer, *arguments, **named)  # kernels do not call submodules
        try:
            return made(*arguments, **named)
        except file.NotVerified as error:
            why = str(error)
    own = type(layer).forward
    if own is getattr(file, "LAYER", None):
        raise file.NotVerified(why)
    if why not in _warned:
        _warned.add(why)
        warnings.warn(f"{{type(layer).__name__}}: its own forward runs: {{why}}", stacklevel=3)
    return own(layer, *arguments, **named)
'''

LAYER = """

class {name}(torch.nn.Module):
    has_backward = False
    can_torch_compile = False

    def forward({signature}):
        return _run({file}, {call})


{file}.LAYER = {name}.forward
"""


MOST_BYTES = 1 << 30  # of one file


class Wrong(Exception):
    """What is wrong with the input; the message is for the user."""


def read_text(path):
    try:
        return limited_text(path, MOST_BYTES, Wrong)
    except Wrong as error:
        raise Wrong(f"{path}: {error}") from None


class Written:
    """A file that Nereid wrote: its kernels, `class ModelNew`, and the guard's data."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self.text = read_text(self.path)
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError) as error:
            raise Wrong(f"{path}: {error}") from None
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        if "ModelNew" not in classes:
            raise Wrong(f"{path}: expected a file with `class ModelNew` that Nereid wrote")
        forward = [
            n for n in classes["ModelNew"].body if isinstance(n, ast.FunctionDef) and n.name == "forward"
        ]
        guards = [
            node.value for node in tree.body
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and getattr(node.value.func,
                "id", "") == "_guard"
        ]  # fmt: skip
        if (
            not forward
            or len(guards) != 1
            or len(guards[0].args) < 2
            or not isinstance(guards[0].args[1], ast.Dict)
        ):
            raise Wrong(
                f"{path}: expected the guard at the end that `nereid optimize` and `nereid lower` write"
            )
        self.arguments, self.guard = forward[0].args, guards[0].args[1]
        self.data = {key.value: value for key, value in zip(self.guard.keys, self.guard.values)}
        self.signature = ast.unparse(self.arguments)

    @property
    def name(self):
        return self.path.stem

    def with_verified(self):
        """The text with the guard's data under the name VERIFIED."""
        lines = self.text.splitlines()
        start, end = self.guard, self.guard
        data = "\n".join(lines[start.lineno - 1 : end.end_lineno])
        first, last = lines[start.lineno - 1], lines[end.end_lineno - 1]
        data = data[start.col_offset : len(data) - (len(last) - end.end_col_offset)]
        before = "\n".join(lines[: self._call_line()])
        call = "\n".join(lines[self._call_line() : start.lineno - 1]
                         + [first[: start.col_offset] + "VERIFIED" + last[end.end_col_offset :]])  # fmt: skip
        return f"{before}\nVERIFIED = {data}\n{call}\n" + "\n".join(lines[end.end_lineno :]) + "\n"

    def _call_line(self):
        for node in ast.parse(self.text).body:
            if isinstance(node, ast.Expr) and node.lineno <= self.guard.lineno <= node.end_lineno:
                return node.lineno - 1
        raise Wrong(f"{self.path}: expected the guard's call")

    def stateless(self):
        state = self.data.get("state")
        return isinstance(state, ast.Dict) and not state.keys


def file_name(name):
    """As `nereid import` names files: task_formats.py."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", str(name)).lstrip(".")[:120]


def identifier(text):
    made = re.sub(r"\W", "_", text)
    return made if made and not made[0].isdigit() else f"_{made}"


def hf_kernels(files, folder, options):
    """A repository that `kernels.LocalLayerRepository` loads: one layer for each file, by the file's name."""
    name = re.sub(r"[^a-z0-9]+", "-", options["name"].lower()).strip("-")
    if not re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", name):
        raise Wrong(f"--name {options['name']}: expected two characters or more, a letter first")
    layers, texts = [], {}
    for file in files:
        layer, module = identifier(file.name), f"_{identifier(file.name)}"
        texts[f"{module}.py"] = file.with_verified()
        arguments = file.arguments
        call = [
            arguments.args[0].arg,
            *(a.arg for a in arguments.posonlyargs),
            *(a.arg for a in arguments.args[1:]),
        ]
        call += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
        call += [f"{a.arg}={a.arg}" for a in arguments.kwonlyargs]
        call += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
        layers.append(
            (
                layer,
                module,
                LAYER.format(name=layer, signature=file.signature, file=module, call=", ".join(call)),
            )
        )
    imports = "\n".join(f"from . import {module}" for _, module, _ in layers)
    texts["layers.py"] = LAYERS.format(imports=imports) + "".join(text for *_, text in layers)
    names = ", ".join(f'"{layer}"' for layer, *_ in layers)
    texts["__init__.py"] = f'from . import layers\n\n__all__ = ["layers"]  # {names}\n'
    written = []
    for backend in options["backends"]:
        metadata = {
            "id": f"_{name.replace('-', '_')}_{backend}_{options['version']}", "name": name,
            "version": options["version"],
            "license": options["license"], "python-depends": [], "backend": {"type": backend},
        }  # fmt: skip
        for path, text in {**texts, "metadata.json": json.dumps(metadata, indent=2) + "\n"}.items():
            written.append(write(folder / "build" / f"torch-{backend}" / path, text))
    backends = ", ".join(f'"{backend}"' for backend in options["backends"])
    written.append(write(folder / "build.toml", (
        f'[general]\nname = "{name}"\nversion = {options["version"]}\nedition = 5\n'
        f'license = "{options["license"]}"\n'
        f"backends = [{backends}]\n\n[torch-noarch]\n"
    )))  # fmt: skip
    for path, text in texts.items():
        written.append(write(folder / "torch-ext" / name.replace("-", "_") / path, text))
    return written


def flashinfer_bench(files, folder, options):
    """A solution for each file."""
    written = []
    for file in files:
        if not file.stateless():
            raise Wrong(f"{file.path}: it has parameters or buffers, or makes them when it is built: a "
                        f"solution is a function of its inputs")  # fmt: skip
        arguments = file.data["constructor"]
        if isinstance(arguments, ast.Dict) and arguments.keys or isinstance(arguments,
            ast.List | ast.Tuple) and arguments.elts:  # fmt: skip
            made = f"ModelNew(**{ast.unparse(arguments)})" if isinstance(arguments,
                ast.Dict) else f"ModelNew(*{ast.unparse(arguments)})"  # fmt: skip
        else:
            made = "ModelNew()"
        names = [argument.arg for argument in file.arguments.args[1:]]
        main = (
            f"import torch\n\nfrom kernels import ModelNew\n\n_model = {made}\n\n\n"
            f"@torch.no_grad()\ndef run({', '.join(names)}):\n    return _model({', '.join(names)})\n"
        )
        solution = {
            "name": f"{file.name}_nereid", "definition": options.get("definition") or file.name,
            "author": options["author"],
            "spec": {
                "language": "triton", "target_hardware": ["cuda"], "entry_point": "main.py::run",
                "dependencies": [],
                "destination_passing_style": False,
            },
            "sources": [{"path": "main.py", "content": main}, {"path": "kernels.py", "content": file.text}],
        }  # fmt: skip
        written.append(
            write(folder / "solutions" / f"{solution['name']}.json", json.dumps(solution, indent=2) + "\n")
        )
    return written


STATUS = {
    "Malformed": "COMPILE_ERROR", "Untraceable": "RUNTIME_ERROR", "CompileFailed": "COMPILE_ERROR",
    "Unsafe": "RUNTIME_ERROR", "Mismatch": "INCORRECT_NUMERICAL", "TimedOut": "TIMEOUT", "Verified": "PASSED",
}  # fmt: skip


def read_verdicts(path):
    """Answer lines of `nereid verify --batch`."""
    verdicts = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            verdict = json.loads(line)
        except ValueError as error:
            raise Wrong(f"{path}:{number}: expected JSON: {error}") from None
        if not isinstance(verdict, dict) or not {"id", "verdict", "times", "errors"} <= verdict.keys():
            raise Wrong(f"{path}:{number}: expected a line that `nereid verify --batch` wrote")
        verdicts.append(verdict)
    return verdicts


def items_of(folder):
    """(definitions, workloads by (definition, uuid), names of solutions by definition) of a dataset."""
    definitions, workloads, solutions = {}, {}, {}
    files = [
        path
        for part in ("definitions", "workloads", "solutions")
        for path in (folder / part).rglob("*.json*")
    ]
    for path in sorted([*files, *folder.glob("*.json*")]):
        try:
            text = read_text(path)
            items = map(json.loads, text.splitlines()) if path.suffix == ".jsonl" else [json.loads(text)]
            for item in items:
                if "axes" in item and "reference" in item:
                    definitions[item["name"]] = item
                elif "sources" in item and "spec" in item:
                    solutions.setdefault(item["definition"], []).append(item["name"])
                elif "workload" in item:
                    workloads[item["definition"], item["workload"]["uuid"]] = item["workload"]
        except (ValueError, TypeError, KeyError) as error:
            raise Wrong(f"{path}: expected definitions, workloads or solutions: {type(error).__name__}: "
                        f"{error}") from None  # fmt: skip
    return definitions, workloads, solutions


def pairs_of(folder):
    """{the id of a pair that `nereid import` makes of the dataset: (definition, workload, solution)}."""
    definitions, workloads, solutions = items_of(folder)
    found = {}
    for name in definitions:
        own = [workload for (definition, _), workload in workloads.items() if definition == name]
        for workload in own:
            task = file_name(name if len(own) == 1 else f"{name}-{workload['uuid']}")
            for solution in solutions.get(name, []):
                found[f"{task}/{file_name(solution)}"] = (name, workload, solution)
    return found


def correctness_of(verdict):
    """Of the worst element: errors relative to the reference's value, and absolute."""
    errors = verdict["errors"] or {}
    expected, got = (number_of(errors.get(key, 0.0)) for key in ("expected", "got"))
    is_number = math.isfinite(expected) or math.isfinite(got)
    absolute = abs(got - expected) if is_number else 0.0 if expected == got else math.nan
    relative = (
        absolute / abs(expected)
        if expected and math.isfinite(expected)
        else 0.0
        if absolute == 0
        else math.nan
    )
    return {
        "max_relative_error": json_number(relative), "max_absolute_error": json_number(absolute),
        "extra": {"max_error": errors.get("max_error"), "max_tolerance": errors.get("max_tolerance")},
    }  # fmt: skip


def number_of(value):
    return math.nan if value is None else float(value)


def json_number(value):
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


def status_of(verdict):
    kind = verdict["verdict"]
    if kind == "Error":
        raise Wrong(f"Error: {verdict.get('reason')}")
    if kind not in STATUS:
        raise Wrong(f"{kind}: FlashInfer-Bench has no such status")
    if kind == "Mismatch" and verdict.get("rule") == "output-structure":
        types = re.search(r"expected (\w+)\[.*\], got (\w+)\[", str(verdict.get("reason")))
        return "INCORRECT_DTYPE" if types and types[1] != types[2] else "INCORRECT_SHAPE"
    return STATUS[kind]


def trace_of(verdict, place, options, timestamp):
    definition, workload, solution = place
    status, times = status_of(verdict), verdict["times"]
    evaluation = {
        "status": status, "timestamp": timestamp, "log": str(verdict.get("reason") or ""),
        "environment": {"hardware": options["hardware"], "libs": options["libs"]},
        "correctness": None, "performance": None,
    }  # fmt: skip
    if status in ("PASSED", "INCORRECT_NUMERICAL"):
        evaluation["correctness"] = correctness_of(verdict)
    if status == "PASSED":
        if not times:
            raise Wrong("the verdict has no times: nereid verify --batch ... --time")
        evaluation["performance"] = {
            "latency_ms": times["candidate_ms"], "reference_latency_ms": times["reference_ms"],
            "speedup_factor": times["speedup"],
        }  # fmt: skip
    return {"definition": definition, "workload": workload, "solution": solution, "evaluation": evaluation}


def flashinfer_traces(path, folder, options):
    """A trace for each verdict of a pair that `nereid import` made of the dataset: ([files], [skipped])."""
    places, lines, skipped = pairs_of(folder), {}, []
    timestamp = datetime.datetime.fromtimestamp(path.stat().st_mtime).isoformat(timespec="seconds")
    options = {**options, "libs": versions()}
    for verdict in read_verdicts(path):
        try:
            place = places.get(verdict["id"])
            if place is None:
                raise Wrong(f"{folder} has no such pair of a workload and a solution")
            if not options["hardware"]:
                raise Wrong("--hardware: expected the name of the GPU that timed; this machine has none")
            line = json.dumps(trace_of(verdict, place, options, timestamp))
            lines.setdefault(place[0], []).append(line)
        except Wrong as error:
            skipped.append(f"{verdict['id']}: {error}")
    if not lines:
        raise Wrong(f"{path}: no trace can be made{''.join('; ' + one for one in skipped[:3])}")
    written = []
    for definition, traces in lines.items():
        written.append(write(folder / "traces" / f"{file_name(definition)}.jsonl",
            "".join(line + "\n" for line in traces)))  # fmt: skip
    return written, skipped


def versions():
    found = {}
    for package in ("torch", "triton"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def backendbench(files, folder, options):
    """generated_kernels/add__Tensor/add__Tensor_implementation_nereid.py, by the file's name or
    --operator."""
    if options.get("operator") and len(files) > 1:
        raise Wrong("--operator: expected one file")
    written = []
    for file in files:
        operator = (options.get("operator") or file.name).replace(".", "__")
        if not re.fullmatch(r"[A-Za-z_]\w*", operator):
            raise Wrong(f"{operator}: expected an operator such as add.Tensor: --operator")
        if not file.stateless():
            raise Wrong(f"{file.path}: it has parameters or buffers, or makes them when it is built: an "
                        f"operator is a function of its arguments")  # fmt: skip
        arguments = ast.unparse(file.data["constructor"])
        star = "**" if isinstance(file.data["constructor"], ast.Dict) else "*"
        text = (
            f"{file.text.rstrip()}\n\n\n_model = ModelNew({star}{arguments})\n\n\n"
            f"def {operator}_kernel_impl(*arguments, **named):\n    with __import__('torch').no_grad():\n"
            "        return _model(*arguments, **named)\n"
        )
        written.append(write(folder / operator / f"{operator}_implementation_nereid.py", text))
    return written


def write(path, text):
    write_text(path, text)
    return str(path)


FORMATS = {"hf-kernels": hf_kernels, "flashinfer-bench": flashinfer_bench, "backendbench": backendbench}


def main():
    name, path, folder, options = sys.argv[1:]
    path, skipped, options = pathlib.Path(path), [], json.loads(options)
    try:
        if name == "flashinfer-bench" and path.suffix == ".jsonl":
            written, skipped = flashinfer_traces(path, pathlib.Path(folder), options)
            print(json.dumps({"files": written, "skipped": skipped}))
            return
        files = []
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            try:
                files.append(Written(file))
            except Wrong as error:
                if not path.is_dir():
                    raise
                skipped.append(str(error))
        if not files:
            raise Wrong(f"{path}: expected files with `class ModelNew` that Nereid wrote, got "
                        f"none{''.join('; ' + one for one in skipped[:3])}")  # fmt: skip
        print(json.dumps({"files": FORMATS[name](files, pathlib.Path(folder), options), "skipped": skipped}))
    except Wrong as error:
        print(json.dumps({"wrong": str(error)}))
    except NotWritten as error:
        print(json.dumps({"not_written": str(error)}))


if __name__ == "__main__":
    os.umask(0o022)
    main()
