"""`nereid import`: tasks in the formats of other benchmarks, as files with `class Model`; runs none of their
code.

    python task_formats.py FORMAT PATH FOLDER    prints {"tasks": [...], "candidates": [...], "skipped":
                                                 [...]}

In the folder each task is NAME.py. Solutions that come with them are candidates/NAME/SOLUTION.py, and
pairs.jsonl holds a line for each, which `nereid verify --batch` reads. What a task cannot be made of is
skipped with its reason.
"""

import ast
import json
import keyword
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # `python -I` leaves it out
from text_files import NotWritten, limited_text, write_text  # noqa: E402

FLOATS = {"float16", "bfloat16", "float32", "float64"}
SMALL_FLOATS = {"float8_e4m3fn", "float8_e5m2"}
INTEGERS = {"int8", "int16", "int32", "int64", "uint8"}
MOST_BYTES = 16 << 20  # of one file


class Skipped(Exception):
    """Why there is no task; the message is for the user."""


def file_name(name):
    """A name as one of a file: no separators, no leading dot."""
    made = re.sub(r"[^A-Za-z0-9_.-]", "_", str(name)).lstrip(".")[:120]
    if not made:
        raise Skipped("expected a name")
    return made


def identifier(name, what):
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise Skipped(f"{what} {name!r}: expected a Python name")
    return name


def field(of, name, kind, what):
    """A field of an object that must be there."""
    if not isinstance(of, dict) or not isinstance(of.get(name), kind):
        expected = {dict: "an object", list: "a list", str: "a text"}.get(kind, "a value")
        raise Skipped(f"{what}: expected `{name}`, {expected}")
    return of[name]


def parsed(code, what):
    try:
        return ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise Skipped(f"{what}: line {getattr(error, 'lineno', None) or 1}: {error}") from None


def functions_of(code, what):
    return {
        node.name: node
        for node in parsed(code, what).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def included(path, text):
    """A file that a candidate carries: src/nereid/base/program/included_files.h."""
    lines = "".join(f"#| {line}\n" if line else "#|\n" for line in text.replace("\r\n", "\n").split("\n"))
    return f"# nereid-include {path}\n{lines}"


class Output:
    """Files of the folder, and what is said of them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.tasks, self.candidates, self.skipped, self._pairs = [], [], [], []

    def task(self, name, text):
        path = self.folder / f"{file_name(name)}.py"
        if str(path) in self.tasks:
            raise Skipped("there is another task of that name")
        write_text(path, text)
        self.tasks.append(str(path))
        return path

    def candidate(self, task, name, text):
        path = self.folder / "candidates" / task.stem / f"{file_name(name)}.py"
        write_text(path, text)
        self.candidates.append(str(path))
        self._pairs.append({
            "id": f"{task.stem}/{path.stem}", "reference": task.name,
            "candidate": str(path.relative_to(self.folder)),
        })  # fmt: skip

    def skip(self, what, error):
        self.skipped.append({"what": str(what), "why": str(error)})

    def close(self):
        if self._pairs:
            lines = "".join(json.dumps(pair) + "\n" for pair in self._pairs)
            write_text(self.folder / "pairs.jsonl", lines)
        return {"tasks": self.tasks, "candidates": self.candidates, "skipped": self.skipped}


# -- FlashInfer-Bench, and SOL-ExecBench, whose files are alike --------------------------------------------


def read_text(path):
    return limited_text(path, MOST_BYTES, Skipped)


def read_json(path):
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise Skipped(f"expected JSON: {error}") from None


def read_lines(path):
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise Skipped(f"line {number}: expected JSON: {error}") from None


def files_below(path, *endings):
    if path.is_file():
        return [path]
    return sorted(p for p in path.rglob("*") if p.suffix in endings and p.is_file())


def import_flashinfer_bench(path, output):
    definitions, workloads, solutions = {}, {}, []
    for file in files_below(path, ".json", ".jsonl"):
        try:
            for item in read_lines(file) if file.suffix == ".jsonl" else [read_json(file)]:
                if not isinstance(item, dict):
                    raise Skipped("expected an object")
                if "reference" in item and "axes" in item:
                    definitions[field(item, "name", str, "definition")] = item
                elif "sources" in item and "spec" in item:
                    solutions.append(item)
                elif "workload" in item:
                    workload = field(item, "workload", dict, "trace")
                    workloads.setdefault(field(item, "definition", str, "trace"), {}).setdefault(
                        str(workload.get("uuid", len(workloads))), workload
                    )
        except (Skipped, OSError) as error:
            output.skip(file, error)
    if not definitions and not output.skipped:
        output.skip(
            path,
            "expected a definition: a JSON object with `name`, `axes`, `inputs`, `outputs` and `reference`",
        )
    for name, definition in definitions.items():
        found = list(workloads.get(name, {}).items()) or [("", {})]
        for uuid, workload in found:
            what = name if len(found) == 1 else f"{name}-{uuid}"
            try:
                task = output.task(what, task_of(definition, workload))
            except Skipped as error:
                output.skip(what, error)
                continue
            for solution in solutions:
                if solution.get("definition") == name:
                    try:
                        output.candidate(
                            task, solution.get("name"), candidate_of(solution, definition, workload)
                        )
                    except Skipped as error:
                        output.skip(f"{what}: solution {solution.get('name')}", error)
    for solution in solutions:
        if solution.get("definition") not in definitions:
            output.skip(
                f"solution {solution.get('name')}", f"there is no definition {solution.get('definition')!r}"
            )


def sizes_of(definition, workload):
    """{axis: size}."""
    sizes = {}
    for name, axis in field(definition, "axes", dict, "definition").items():
        identifier(name, "axis")
        size = axis.get("value") if isinstance(axis, dict) and axis.get("type") == "const" else None
        if size is None:
            size = (workload.get("axes") or {}).get(name)
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise Skipped(f"axis {name}: expected a size in the definition or in a workload")
        sizes[name] = size
    return sizes


def shape_of(spec, sizes, what):
    shape = spec.get("shape")
    if shape is None:
        return None
    found = []
    for axis in shape if isinstance(shape, list) else ["?"]:
        if isinstance(axis, str) and axis.isdigit():
            axis = int(axis)
        if not isinstance(axis, int) and axis not in sizes:
            raise Skipped(f"{what}: expected a list of axes, got {shape!r}")
        found.append(str(axis))
    return "(" + ", ".join(found) + ("," if len(found) == 1 else "") + ")"


def drawn(spec, given, sizes, what):
    """An expression that draws an input."""
    kind = (given or {}).get("type", "random")
    dtype = spec.get("dtype")
    shape = shape_of(spec, sizes, what)
    if kind == "scalar":
        value = given.get("value")
        if not isinstance(value, bool | int | float):
            raise Skipped(f"{what}: expected a number, got {value!r}")
        return repr(value) if value == value and abs(value) != float("inf") else f"float('{value}')"
    if kind != "random":
        raise Skipped(f"{what}: expected an input of type random or scalar, got {kind!r}")
    if shape is None:
        return "True" if dtype == "bool" else "1" if dtype in INTEGERS else "1.0"
    if dtype in FLOATS:
        return f"torch.randn({shape}, dtype=torch.{dtype})"
    if dtype in SMALL_FLOATS:
        return f"torch.randn({shape}).to(torch.{dtype})"
    if dtype in INTEGERS:  # an index of any axis
        limit = max(1, min([size for size in sizes.values() if size > 0] or [1]))
        return f"torch.randint(0, {min(limit, 100)}, {shape}, dtype=torch.{dtype})"
    if dtype == "bool":
        return f"torch.rand({shape}) > 0.5"
    raise Skipped(f"{what}: there are no inputs of type {dtype!r}")


def axes_text(sizes, code):
    """Axes as module-level integers, which --shrink and --also-at change."""
    taken = {node.id for node in ast.walk(parsed(code, "reference")) if isinstance(node,
        ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    clash = sorted(taken & sizes.keys() & top_level_names(code))
    if clash:
        raise Skipped(f"axis {clash[0]}: the reference has another {clash[0]} at top level")
    return "".join(f"{name} = {size}\n" for name, size in sizes.items())


def top_level_names(code):
    found = set()
    for node in parsed(code, "reference").body:
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)} if target else set()
        found.add(getattr(node, "name", None))
    return found


def task_of(definition, workload):
    code = field(definition, "reference", str, "definition")
    if "run" not in functions_of(code, "reference"):
        raise Skipped("reference: expected a function `run` at top level")
    sizes = sizes_of(definition, workload)
    given = workload.get("inputs") or {}
    inputs = {
        identifier(name, "input"): drawn(spec, given.get(name), sizes, f"input {name}")
        for name, spec in field(definition, "inputs", dict, "definition").items()
    }
    names = ", ".join(inputs)
    lines = "".join(f"        {text},\n" for text in inputs.values())
    return (
        f"{code.rstrip()}\n\n\nimport torch\n\n{axes_text(sizes, code)}\n\n"
        f"class Model(torch.nn.Module):\n    def forward(self, {names}):\n        return run({names})\n\n\n"
        f"def get_inputs():\n    return [\n{lines}    ]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def candidate_of(solution, definition, workload):
    spec = field(solution, "spec", dict, "solution")
    if spec.get("language") not in ("python", "triton"):
        raise Skipped(f"expected a solution in Python or Triton, got {spec.get('language')!r}")
    file, _, function = field(spec, "entry_point", str, "solution's spec").partition("::")
    identifier(function, "entry point")
    texts = {}
    for source in field(solution, "sources", list, "solution"):
        path, content = field(source, "path", str, "source"), field(source, "content", str, "source")
        parts = pathlib.PurePosixPath(path).parts
        if path.startswith("/") or ".." in parts or "\n" in path:
            raise Skipped(f"source {path!r}: expected a path below the solution's folder")
        if path.endswith(".py"):
            texts["/".join(part for part in parts if part != ".")] = content
    file = file.removeprefix("./")
    if file not in texts:
        raise Skipped(
            f"entry point {file}: expected one of the sources"
            f" {', '.join(sorted(texts)) or '(none in Python)'}"
        )
    module = [identifier(part, "source") for part in file.removesuffix(".py").split("/")]
    sizes = sizes_of(definition, workload)
    names = [identifier(name, "input") for name in field(definition, "inputs", dict, "definition")]
    outputs = field(definition, "outputs", dict, "definition")
    if spec.get("destination_passing_style", True):
        body, given = "", list(names)
        for name, output in outputs.items():
            shape = shape_of(output, sizes, f"output {name}")
            if shape is None or output.get("dtype") not in FLOATS | SMALL_FLOATS | INTEGERS | {"bool"}:
                raise Skipped(f"output {name}: expected a tensor")
            body += (
                f"        {identifier(name, 'output')} = torch.empty({shape}, dtype=torch.{output['dtype']},"
                " device='cuda')\n"
            )
            given.append(name)
        body += f"        {function}({', '.join(given)})\n        return {', '.join(outputs)}\n"
    else:
        body = f"        return {function}({', '.join(names)})\n"
    axes = "".join(f"{name} = {size}\n" for name, size in sizes.items())
    return (
        f"import torch\nfrom {'.'.join(module)} import {function}\n\n{axes}\n\n"
        f"class ModelNew(torch.nn.Module):\n    def forward(self, {', '.join(names)}):\n{body}\n\n"
        + "".join(included(path, text) for path, text in sorted(texts.items()))
    )


# -- BackendBench: a folder for each operator, with implementations ----------------------------------------

ARGUMENTS = '''
def example(schema):
    """Arguments of the operator: tensors of one shape, ones for numbers."""
    made = []
    for argument in schema.arguments:
        kind = str(argument.type)
        if argument.has_default_value() or argument.kwarg_only:
            break
        if kind == "Tensor":
            made.append(torch.randn(64, 64))
        elif kind == "List[Tensor]":
            made.append([torch.randn(64, 64), torch.randn(64, 64)])
        elif kind in ("number", "float"):
            made.append(1.0)
        elif kind == "int":
            made.append(1)
        elif kind == "bool":
            made.append(True)
        else:
            raise TypeError(
                f"{schema.name}: {argument.name} of type {kind}: write get_inputs() for it, or use --inputs"
            )
    return made
'''


def import_backendbench(path, output):
    if not path.is_dir():
        return
    folders = (
        [path] if list(path.glob("*_implementation*.py")) else sorted(p for p in path.iterdir() if p.is_dir())
    )
    for folder in folders:
        files = sorted(folder.glob("*_implementation*.py"))
        if not files:
            continue
        try:
            operator, _, overload = folder.name.partition("__")
            identifier(operator, "operator"), identifier(overload or "default", "overload")
            call = f"torch.ops.aten.{operator}.{overload or 'default'}"
            task = output.task(
                folder.name,
                f"import torch\n\nOPERATOR = {call}\n\n{ARGUMENTS}\n\nclass Model(torch.nn.Module):\n    def"
                " forward(self, *arguments):\n        return OPERATOR(*arguments)\n\n\ndef get_inputs():\n  "
                "  return example(OPERATOR._schema)\n\n\ndef get_init_inputs():\n    return []\n",
            )
        except Skipped as error:
            output.skip(folder, error)
            continue
        for file in files:
            try:
                code, name = read_text(file), f"{folder.name}_kernel_impl"
                if name not in functions_of(code, file.name):
                    raise Skipped(f"expected a function {name}")
                output.candidate(
                    task, file.stem,
                    f"{code.rstrip()}\n\n\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n"
                    f"    def forward(self, *arguments):\n        return {name}(*arguments)\n",
                )  # fmt: skip
            except (Skipped, OSError) as error:
                output.skip(file, error)
    if not output.tasks and not output.skipped:
        output.skip(path, "expected folders such as add__Tensor with add__Tensor_implementation*.py")


# -- TritonBench: functions, a line of 146 #, and test functions -------------------------------------------

CALLS = '''
def recorded_calls():
    """Arguments of each call that the tests make of the function, in order."""
    found, function = [], {name}

    def record(*arguments, **named):
        found.append((arguments, named))
        return function(*arguments, **named)

    globals()["{name}"] = record
    try:
        {test}()
    finally:
        globals()["{name}"] = function
    return found
'''


def import_tritonbench(path, output):
    for file in files_below(path, ".py"):
        try:
            text = read_text(file)
            halves = re.split(r"(?m)^#{146}[ \t]*$", text)
            if len(halves) != 2:
                raise Skipped(
                    f"expected functions and tests around one line of 146 #, got {len(halves) - 1} such lines"
                )
            functions, tests = functions_of(halves[0], "functions"), functions_of(halves[1], "tests")
            kernels = {name for name, node in functions.items()
                       if any("jit" in ast.dump(mark) for mark in node.decorator_list)}  # fmt: skip
            for test, node in tests.items():
                called = [part.func.id for part in ast.walk(node) if isinstance(part,
                    ast.Call) and isinstance(part.func, ast.Name)]  # fmt: skip
                names = list(
                    dict.fromkeys(name for name in called if name in functions and name not in kernels)
                )
                if not test.startswith("test") or not names:
                    continue
                try:
                    write_calls(output, file, text, names[0], test, node)
                except Skipped as error:
                    output.skip(f"{file}: {test}", error)
            if not any(str(output.folder / file_name(file.stem)) in task for task in output.tasks):
                raise Skipped("expected a function `test...` that calls a function of the first part")
        except (Skipped, OSError) as error:
            output.skip(file, error)


def write_calls(output, file, text, name, test, node):
    """A task for each call that the test makes."""
    calls = sum(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == name
        for part in ast.walk(node)
    )
    # The tests' own run at the end of the file is none of the task's.
    body = parsed(text, "file").body
    lines = text.splitlines()
    ends = [
        n.lineno - 1 for n in body if isinstance(n, ast.Assign | ast.Expr | ast.If) and n.lineno > node.lineno
    ]
    kept = "\n".join(lines[: min(ends)] if ends else lines).rstrip()
    for i in range(calls):
        output.task(
            f"{file.stem}-{test}-{i}" if calls > 1 else f"{file.stem}-{test}",
            f"{kept}\n\n\nimport torch\n{CALLS.format(name=name, test=test)}\n\nclass"
            " Model(torch.nn.Module):\n    def forward(self, arguments, named):\n        return"
            f" {name}(*arguments, **named)\n\n\ndef get_inputs():\n    return"
            f" list(recorded_calls()[{i}])\n\n\ndef get_init_inputs():\n    return []\n",
        )


FORMATS = {
    "flashinfer-bench": import_flashinfer_bench,
    "sol-execbench": import_flashinfer_bench,
    "backendbench": import_backendbench,
    "tritonbench": import_tritonbench,
}


def main():
    name, path, folder = sys.argv[1:]
    output = Output(folder)
    try:
        FORMATS[name](pathlib.Path(path), output)
        if not output.tasks and not output.skipped:
            output.skip(path, f"no file or folder of the format {name}: `nereid import --help` lists them")
        print(json.dumps(output.close()))
    except NotWritten as error:
        print(json.dumps({"not_written": str(error)}))


if __name__ == "__main__":
    os.umask(0o022)
    main()
