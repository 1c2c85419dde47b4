"""A module's own source as a task: its class in its author's words, with what the class needs.

The class is renamed to Model. What it names is written before it: imports of PyTorch and of the standard
library, constants, and functions and classes of its package. Decorators of the package are left out. A
configuration object becomes a namespace with the fields that the source reads. Where something has no text,
or too much is needed, there is no task.
"""

import ast
import builtins
import functools
import importlib
import inspect
import re
import sys
import textwrap
import types

import torch
from torch import nn

from . import recording, spelling
from .cutting import input_text, runs
from .spelling import NoText

_MOST_DEFINITIONS = 24
_MOST_LINES = 260
_STANDARD = {"torch", "math", "typing", "functools", "collections", "itertools", "dataclasses", "enum",
             "types", "warnings", "abc", "copy",
             "operator", "typing_extensions", "numbers", "logging", "__future__", "inspect", "re", "string",
             "contextlib"}  # fmt: skip


class _Rewrite(ast.NodeTransformer):
    """Without annotations, docstrings and decorators of the package."""

    def __init__(self, keeps):
        self._keeps = keeps

    def _definition(self, node):
        self.generic_visit(node)
        node.decorator_list = [d for d in node.decorator_list if self._keeps(d)]
        if node.body and isinstance(node.body[0], ast.Expr) and isinstance(getattr(node.body[0], "value",
            None), ast.Constant) and isinstance(
            node.body[0].value.value, str
        ):  # fmt: skip
            node.body = node.body[1:] or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        for argument in [
            *node.args.args,
            *node.args.posonlyargs,
            *node.args.kwonlyargs,
            node.args.vararg,
            node.args.kwarg,
        ]:
            if argument is not None:
                argument.annotation = None
        return self._definition(node)

    def visit_ClassDef(self, node):
        return self._definition(node)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is None:
            return None if not isinstance(node.target, ast.Name) else ast.Pass()
        return ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)


class Collector:
    """Definitions that a class needs, in an order in which they can be executed."""

    def __init__(self):
        self.imports, self.definitions, self._state = {}, [], {}
        self.reads_config = set()

    def add(self, name, value):
        """Makes `name` mean `value` in the task."""
        if name in self._state:
            if self._state[name] is not value:
                raise NoText(f"{name} means two things")
            return
        if hasattr(builtins, name) and getattr(builtins, name) is value:
            return
        self._state[name] = value
        if isinstance(value, types.ModuleType):
            return self._import_module(name, value)
        if inspect.isclass(value) or inspect.isroutine(value) or _from_standard(value):
            home = getattr(value, "__module__", None) or ""
            if home.split(".")[0] in _STANDARD or home == "_operator" or home.startswith("torch"):
                return self._import_name(name, value)
        if inspect.isclass(value) or isinstance(value, types.FunctionType):
            return self._definition(name, value)
        if isinstance(value, functools.partial):
            raise NoText("a partial function")
        self.definitions.append(f"{name} = {spelling.literal(value, self.reference)}")

    def reference(self, value):
        """Text of a class, a function or a configuration, which the task then has; None for other values."""
        if isinstance(value, functools.partial):
            self.add("partial", functools.partial)
            inner = [spelling.literal(v, self.reference) for v in (value.func, *value.args)]
            inner += [f"{k}={spelling.literal(v, self.reference)}" for k, v in value.keywords.items()]
            return f"partial({', '.join(inner)})"
        if inspect.isclass(value) or isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            if getattr(nn, value.__name__, None) is value:
                self.add("nn", nn)
                return f"nn.{value.__name__}"
            if value.__name__ == "<lambda>":
                raise NoText("a lambda")
            self.add(value.__name__, value)
            return value.__name__
        if type(value).__name__.endswith("Config") or type(value) is types.SimpleNamespace:
            return self._config_text(value)
        return None

    def _config_text(self, value):
        """A namespace with the fields that the source reads."""
        self.add("SimpleNamespace", types.SimpleNamespace)
        fields = []
        for name in sorted(self.reads_config):
            try:
                field = getattr(value, name)
            except AttributeError:
                continue
            if inspect.ismethod(field):
                raise NoText("a method of a configuration")
            fields.append(f"{name}={spelling.literal(field, self.reference)}")
        return f"SimpleNamespace({', '.join(fields)})"

    def _import_module(self, name, value):
        full = value.__name__
        if full.split(".")[0] not in _STANDARD:
            raise NoText(f"the module {full}")
        self.imports[f"import {full}" + (f" as {name}" if name != full else "")] = None

    def _import_name(self, name, value):
        for home in (
            getattr(value, "__module__", None),
            "torch",
            "torch.nn",
            "torch.nn.functional",
            "math",
            "typing",
        ):
            try:
                module = importlib.import_module(home) if home else None
            except BaseException:
                continue
            original = getattr(value, "__name__", name)
            for attribute in (original, name):
                if module is not None and getattr(module, attribute, None) is value:
                    if home.startswith("torch.nn.modules"):
                        home = "torch.nn"
                        if getattr(nn, attribute, None) is not value:
                            continue
                    self.imports[
                        f"from {home} import {attribute}" + (f" as {name}" if name != attribute else "")
                    ] = None
                    return
        raise NoText(f"{name} cannot be imported")

    def _definition(self, name, value):
        if len(self.definitions) >= _MOST_DEFINITIONS:
            raise NoText("too many definitions")
        text = self.text_of(value, name)
        if getattr(value, "__name__", name) != name:
            text = re.sub(rf"\b{value.__name__}\b", name, text)
        self.definitions.append(text)

    def text_of(self, value, own_name):
        """The source of a class or function, after what it needs was added."""
        try:
            source = textwrap.dedent(inspect.getsource(value))
            tree = ast.parse(source)
        except (OSError, TypeError, SyntaxError, IndentationError) as error:
            raise NoText("no source") from error
        scope = _scope(value)

        def keeps(decorator):
            root = decorator
            while isinstance(root, (ast.Attribute, ast.Call)):
                root = root.func if isinstance(root, ast.Call) else root.value
            if not isinstance(root, ast.Name):
                return False
            if root.id in ("property", "staticmethod", "classmethod"):
                return True
            return False

        tree = ast.fix_missing_locations(_Rewrite(keeps).visit(tree))
        text = ast.unparse(tree)
        if text.count("\n") > _MOST_LINES:
            raise NoText("a long source")
        for name in sorted(_free_names(tree)):
            if name == own_name or name == getattr(value, "__name__", None):
                continue
            if name in scope:
                self.add(name, scope[name])
            # A name that is not there is one of a branch that is not taken: `runs` decides.
        self.reads_config.update(re.findall(r"\bconfig\.(\w+)", text))
        return text


def _from_standard(value):
    return (getattr(type(value), "__module__", "") or "").split(".")[0] == "typing"


def _scope(value):
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or ())
        return {**value.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    module = sys.modules.get(value.__module__)
    return dict(vars(module)) if module is not None else {}


class _Names(ast.NodeVisitor):
    """Names that are read and bound, without those of attributes."""

    def __init__(self):
        self.read, self.bound = set(), set()

    def visit_Name(self, node):
        (self.read if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)

    def visit_FunctionDef(self, node):
        self.bound.add(node.name)
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        self.bound.add(node.name)
        self.generic_visit(node)

    def visit_arg(self, node):
        self.bound.add(node.arg)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node):
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        self.bound.update((a.asname or a.name).split(".")[0] for a in node.names)

    visit_ImportFrom = visit_Import


def _free_names(tree):
    names = _Names()
    names.visit(tree)
    return names.read - names.bound


def author_task(called):
    """A module's first call as a task in its author's words; NoText where it is not self-contained."""
    module = called.module
    cls = type(module)
    given = recording.made_with(module)
    if given is None:
        raise NoText("not made by a call")
    if cls.__module__.split(".")[0] == "torch":
        raise NoText("PyTorch's own")
    collector = Collector()
    body = collector.text_of(cls, cls.__name__)
    body = re.sub(rf"(?<!\.)\b{cls.__name__}\b", "Model", body)
    init = _init_text(cls, given, collector)
    inputs = _inputs_text(cls, called)
    if cls.__name__ != "Model" and "Model" in collector._state:
        raise NoText("another Model")
    lines = [*sorted(collector.imports)]
    if "import torch" not in lines:
        lines.insert(0, "import torch")
    for definition in collector.definitions:
        lines += ["", "", definition] if "\n" in definition else ["", definition]
    lines += [
        "",
        "",
        body,
        "",
        "",
        "def get_inputs():",
        f"    return {inputs}",
        "",
        "",
        "def get_init_inputs():",
        f"    return {init}",
        "",
    ]
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))
    if len(text) > 20_000 or not runs(text):
        raise NoText("does not run alone")
    return text


def _init_text(cls, given, collector):
    args, kwargs = given
    texts = [spelling.literal(v, collector.reference) for v in args]
    if not kwargs:
        return f"[{', '.join(texts)}]"
    try:
        names = list(inspect.signature(cls.__init__).parameters.values())[1:]
    except (TypeError, ValueError) as error:
        raise NoText("no signature") from error
    if any(p.kind is p.VAR_POSITIONAL for p in names) and args:
        raise NoText("arguments and keywords")
    items = [f'"{p.name}": {t}' for p, t in zip(names, texts)]
    items += [f'"{k}": {spelling.literal(v, collector.reference)}' for k, v in kwargs.items()]
    return "{" + ", ".join(items) + "}"


def _inputs_text(cls, called):
    def text(value):
        if isinstance(value, torch.Tensor):
            return input_text(value)
        if type(value) in (list, tuple):
            items = [text(v) for v in value]
            return (
                f"[{', '.join(items)}]"
                if type(value) is list
                else f"({', '.join(items)}{',' if len(items) == 1 else ''})"
            )
        return spelling.literal(value)

    if not called.kwargs:
        items = [text(v) for v in called.args]
        return f"[{', '.join(items)}]"
    try:
        bound = inspect.signature(cls.forward).bind(called.module, *called.args, **called.kwargs)
    except TypeError as error:
        raise NoText("arguments that do not fit") from error
    parameters = inspect.signature(cls.forward).parameters
    values = dict(bound.arguments)
    values.pop(next(iter(parameters)))
    kinds = {parameters[k].kind for k in values}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        raise NoText("a list of arguments")
    more = {}
    for name in list(values):
        if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            more.update(values.pop(name))
    values.update(more)
    while values and next(reversed(values.values())) is None:
        values.popitem()
    return "{" + ", ".join(f'"{k}": {text(v)}' for k, v in values.items()) + "}"
