"""Training pairs of two tasks' operators joined into one module, answered by the compiler.

    python3 bench/small_model/joined.py TASKS.jsonl... OUT.jsonl [--count 1000] [--verify-every 8] [--jobs 2]

Both modules become one: attributes, locals and helpers of the second get other names where the first has
them. Where the first input of the second has the size of the first's result, that result takes its place
("then"); where both have an input of one size, they share it ("both"); else inputs are those of one and then
of the other ("apart"). The forward returns the last result, or both; results of one size are often added or
multiplied. Sizes are those of the plan where a line has one (`given x [2, 3]`, `#4 relu(#3) [2, 3]`), and of
literal calls of torch.randn in get_inputs(). What cannot be traced is left out. Of the
answers of `nereid train pairs` one in --verify-every is judged, and kept if it is Verified. The last line on
stdout counts, per minute of one core.
"""

import argparse
import ast
import copy
import json
import re

from answers import TAKEN, LeftOut, add_options, forward_of, function_of, parsed, returned, run, text_of
from reworded import Renamer, methods_of, model_of

CALCULATED = ("{} + {}", "{} * {}", "{} - {}", "torch.maximum({}, {})")


class Names(Renamer):
    """Other names of helpers and of attributes that a call registers, too."""

    def visit_Call(self, node):
        self.generic_visit(node)
        named = getattr(node.func, "attr", "") in ("register_buffer", "register_parameter", "add_module")
        if named and node.args and isinstance(node.args[0], ast.Constant):
            node.args[0].value = self.attributes.get(node.args[0].value, node.args[0].value)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node

    def visit_ClassDef(self, node):
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node


def own_attributes(tree):
    return {
        node.attr
        for node in ast.walk(model_of(tree))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def bound_names(tree):
    """Names that the file binds: locals, arguments, helpers; without imports and what the harness calls."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names - {"self", "Model", "forward", "__init__", "get_inputs", "get_init_inputs"}


def fresh(name, taken):
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    taken.add(f"{name}{number}")
    return f"{name}{number}"


def apart(first, second):
    """The second tree with other names where the first has them."""
    taken = bound_names(first) | bound_names(second)
    names = {name: fresh(name, taken) for name in sorted(bound_names(first) & bound_names(second))}
    first_attributes, own = own_attributes(first), own_attributes(second)
    methods = {node.name for node in model_of(second).body if isinstance(node, ast.FunctionDef)}
    taken = first_attributes | own
    shared = {name for name in first_attributes & own if name not in TAKEN}
    shared |= {name for name in methods if name in names}
    attributes = {name: names.get(name) or fresh(name, taken) for name in sorted(shared)}
    return Names(names, attributes).visit(second)


def inputs_of(tree):
    """The expressions of get_inputs(), if all that it does is to return a list."""
    function = function_of(tree, "get_inputs")
    value = returned(function)
    if len(function.body) != 1 or not isinstance(value, ast.List):
        raise LeftOut("another get_inputs")
    return value.elts


def size_of(expression):
    """The sizes of a literal torch.randn(2, 3) or torch.rand((2, 3)), as text; None for others."""
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Attribute):
        return None
    if expression.func.attr not in ("randn", "rand") or expression.keywords:
        return None
    sizes = expression.args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    numbers = [size.value for size in sizes if isinstance(size, ast.Constant) and type(size.value) is int]
    return numbers if len(numbers) == len(sizes) else None


def result_sizes(plan):
    """Sizes of what a plan returns, if it is one tensor: those of its line, or of the given one."""
    found = re.search(r"^returns (#?[\w.]+)$", plan or "", re.M)
    if not found:
        return None
    line = re.search(rf"^{re.escape(found[1])} \w+\(.*\) \[([\d, *]*)\]$", plan, re.M)
    if not line or "*" in line[1]:
        return None
    return [int(size) for size in line[1].split(",")] if line[1].strip() else []


def constructor(tree):
    """Statements of __init__ without its call of super; LeftOut where it has arguments."""
    found = methods_of(tree, "__init__")
    if not found:
        return []
    if len(found[0].args.args) > 1 or found[0].args.vararg or found[0].args.kwonlyargs:
        raise LeftOut("arguments of the constructor")
    return [line for line in found[0].body if "super" not in ast.unparse(line)]


def without_docstring(body):
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return body[1:]
    return body


def results_named(forward, name):
    """The forward's body, its result under a name; LeftOut where it returns several."""
    value = returned(forward)
    if isinstance(value, (ast.Tuple, ast.List, ast.Dict)):
        raise LeftOut("several results")
    return [*without_docstring(forward.body)[:-1], ast.parse(f"{name} = {ast.unparse(value)}").body[0]]


def join(first, second, sizes, rng):
    """One tree of both; `sizes` are those of their results, None where they are not known."""
    second = apart(first, copy.deepcopy(second))
    forwards = [forward_of(tree) for tree in (first, second)]
    arguments = [[argument.arg for argument in forward.args.args[1:]] for forward in forwards]
    inputs = [inputs_of(tree) for tree in (first, second)]
    if [len(each) for each in arguments] != [len(each) for each in inputs]:
        raise LeftOut("other inputs")
    constructors = constructor(first) + constructor(second)
    taken = bound_names(first) | bound_names(second)
    names = [fresh("result", taken), fresh("result", taken)]
    bodies = [results_named(forward, name) for forward, name in zip(forwards, names)]
    known = [[size_of(each) for each in some] for some in inputs]
    body, way = [*bodies[0]], "apart"
    if sizes[0] is not None and inputs[1] and known[1][0] == sizes[0]:
        way = "then"
        body.append(ast.parse(f"{arguments[1].pop(0)} = {names[0]}").body[0])
        inputs[1] = inputs[1][1:]
    else:
        for at, size in enumerate(known[1]):
            if size is not None and size in known[0] and rng.random() < 0.8:
                way = "both"
                shared = arguments[0][known[0].index(size)]
                # Before the first forward, which may give this name another value.
                body.insert(0, ast.parse(f"{arguments[1].pop(at)} = {shared}").body[0])
                inputs[1] = [each for i, each in enumerate(inputs[1]) if i != at]
                break
    body += bodies[1]
    if way == "then" and rng.random() < 0.7:
        last = names[1]
    elif sizes[0] is not None and sizes[0] == sizes[1] and rng.random() < 0.6:
        last = rng.choice(CALCULATED).format(*names)
    else:
        last = ", ".join(names)
    body.append(ast.parse(f"return {last}").body[0])
    return assembled(first, second, constructors, arguments, inputs, body), way


def assembled(first, second, constructors, arguments, inputs, body):
    """The file: imports and helpers of both, one module, get_inputs() and get_init_inputs()."""
    imports, helpers, seen = [], [], set()
    for tree in (first, second):
        for line in without_docstring(tree.body):
            if getattr(line, "name", "") in ("Model", "get_inputs", "get_init_inputs"):
                continue
            text = ast.unparse(line)
            if text not in seen:
                seen.add(text)
                (imports if isinstance(line, (ast.Import, ast.ImportFrom)) else helpers).append(line)
    model = copy.deepcopy(model_of(first))
    made = ast.parse("def __init__(self):\n    super().__init__()").body[0]
    made.body += constructors
    forward = ast.parse(f"def forward(self, {', '.join(arguments[0] + arguments[1])}):\n    pass").body[0]
    forward.body = body
    methods = [
        node
        for tree in (first, second)
        for node in without_docstring(model_of(tree).body)
        if not isinstance(node, ast.Pass) and getattr(node, "name", "") not in ("__init__", "forward")
    ]
    model.body = [made, *methods, forward]
    drawn = ast.parse("def get_inputs():\n    return []").body[0]
    drawn.body[0].value.elts = inputs[0] + inputs[1]
    empty = ast.parse("def get_init_inputs():\n    return []").body[0]
    torch = ast.parse("import torch").body
    return ast.Module(
        [*torch, *[i for i in imports if ast.unparse(i) != "import torch"], *helpers, model, drawn, empty], []
    )


plans = {}


def no_init_inputs(tree):
    value = returned(function_of(tree, "get_init_inputs"))
    if not isinstance(value, ast.List) or value.elts:
        raise LeftOut("arguments of the constructor")


def joined(tasks, rng):
    """Two tasks of a draw; the second is one that can come after the first, if a few draws find such."""
    source, code = rng.choice(tasks)
    first = parsed(code)
    no_init_inputs(first)
    sizes = result_sizes(plans.get(code))
    for turn in range(24):
        other_source, other_code = rng.choice(tasks)
        second = parsed(other_code)
        try:
            no_init_inputs(second)
            known = [size_of(each) for each in inputs_of(second)]
        except LeftOut:
            continue
        # One pair in five is taken as it comes.
        if other_code != code and (
            turn == 23 or rng.random() < 0.01 or (sizes is not None and known[:1] == [sizes])
        ):
            break
    tree, way = join(first, second, [sizes, result_sizes(plans.get(other_code))], rng)
    text = text_of(tree)
    compile(text, "task", "exec")
    return f"{source} {way} {other_source}", text


def read_plans(paths):
    for path in paths:
        if str(path).endswith(".jsonl"):
            with open(path) as file:
                for line in file:
                    row = json.loads(line)
                    if "plan" in row:
                        plans[row["task"]] = row["plan"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser)
    args = parser.parse_args()
    read_plans(args.tasks)
    run(args, joined, "joined")


if __name__ == "__main__":
    main()
