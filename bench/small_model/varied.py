"""Further tasks from harvested ones: other sizes, other attribute names, parts of the forward.

    python3 bench/small_model/varied.py TASKS.jsonl OUT.jsonl --count 20000 [--seed 1] [--jobs 2]

TASKS.jsonl is a `train.jsonl` of `nereid harvest`; only its lines with `form` "subgraph", whose text harvest
writes itself, are read. Each task of OUT is made from one of them, drawn at random:

  sizes     one or two sizes of the inputs become others, everywhere in the module
  names     attributes get names that other tasks give to layers of the same class
  a part    one in two keeps a range of the forward's statements alone; what those read becomes an input

It is run by PyTorch; what fails, holds more than 4 million elements in a tensor, draws random numbers or has
results that are not finite is left out, and so is a text that came before. With --without HELD_OUT.jsonl so
is each module that is one of that file's but for names. Lines have `id`, `code`, `from` (the task's id) and
`split` "train". The last line on stdout counts what was written and left out.
"""

import argparse
import ast
import collections
import copy
import json
import multiprocessing
import random
import re
import signal
import time
import warnings

import torch
from reworded import Renamer, methods_of, model_of

MOST_ELEMENTS = 1 << 22
SIZES = [5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 20, 21, 24, 25, 28, 30, 32, 33, 36, 40, 48, 50, 56, 60]
SIZES += [63, 64, 65, 72, 80, 96, 100, 112, 120, 127, 128, 129, 144, 160, 192, 200, 224, 255, 256, 320, 384]
SMALL = [1, 2, 3, 4, 5]
INPUT_NAMES = "x y z u v w a b c d e p q r s t".split()
SHAPES = {
    "reshape",
    "view",
    "expand",
    "repeat",
    "unflatten",
    "new_zeros",
    "new_ones",
    "zeros",
    "ones",
    "full",
}


class LeftOut(Exception):
    pass


class Sizes(ast.NodeTransformer):
    """Replaces integers of `large` everywhere, those of `small` in inputs and in shapes alone."""

    def __init__(self, large, small):
        self.large, self.small, self.depth = large, small, 0

    def visit_Constant(self, node):
        if type(node.value) is int:
            changed = self.large.get(node.value, node.value)
            if self.depth:
                changed = self.small.get(changed, changed)
            return ast.Constant(changed)
        return node

    def visit_FunctionDef(self, node):
        return self.deeper(node, node.name == "get_inputs")

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return self.deeper(node, name in SHAPES)

    def deeper(self, node, shape):
        self.depth += shape
        self.generic_visit(node)
        self.depth -= shape
        return node


def with_other_sizes(tree, sizes, rng):
    large = [size for size in sizes if size > 4]
    small = [size for size in sizes if 1 < size <= 4]
    changed = {size: rng.choice(SIZES) for size in rng.sample(large, min(len(large), rng.choice([1, 1, 2])))}
    fewer = {rng.choice(small): rng.choice(SMALL)} if small and (not changed or rng.random() < 0.5) else {}
    return Sizes(changed, fewer).visit(tree)


def attribute_of(statement):
    """The attribute that a statement of __init__ defines, and the class of its value, or None."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        value = statement.value
        kind = ast.unparse(value.func) if isinstance(value, ast.Call) else "value"
        return statement.targets[0].attr, kind
    if isinstance(statement, ast.Expr) and ".register_buffer(" in ast.unparse(statement):
        return statement.value.args[0].value, "buffer"
    return None


def attributes_of(tree):
    return dict(
        filter(None, (attribute_of(line) for method in methods_of(tree, "__init__") for line in method.body))
    )


def renamed(tree, names, rng):
    """Attributes of layers get names of other layers of their class; `names` maps classes to such names."""
    known, taken = attributes_of(tree), set(attributes_of(tree))
    chosen = {}
    for name, kind in known.items():
        free = [other for other in names.get(kind, []) if other not in taken]
        if free and kind != "buffer" and rng.random() < 0.7:
            chosen[name] = rng.choice(free)
            taken.add(chosen[name])
    return Renamer({}, chosen).visit(tree)


def limited(value):
    for tensor in value if isinstance(value, (tuple, list)) else [value]:
        if isinstance(tensor, torch.Tensor) and tensor.numel() > MOST_ELEMENTS:
            raise LeftOut("a large tensor")
    return value


def values_of(tree):
    """Runs the module statement by statement: values by name, after the statement that defines them."""
    space = {}
    exec(compile(tree, "task", "exec"), space)
    torch.manual_seed(0)
    (forward,) = methods_of(tree, "forward")
    arguments = [argument.arg for argument in forward.args.args]
    local = dict(zip(arguments, [space["Model"](*space["get_init_inputs"]()), *space["get_inputs"]()]))
    if len(local) != len(arguments):
        raise LeftOut("other arguments")
    state = torch.get_rng_state()
    with torch.no_grad():
        for line in forward.body:
            if isinstance(line, ast.Return):
                local["return"] = limited(
                    eval(compile(ast.Expression(line.value), "task", "eval"), space, local)
                )
            else:
                exec(compile(ast.Module([line], []), "task", "exec"), space, local)
                limited(local.get(getattr(line.targets[0], "id", ""), None))
    if not torch.equal(state, torch.get_rng_state()):
        raise LeftOut("random numbers")
    return local


def read_by(nodes):
    """Names of locals that the nodes read, in order."""
    names = (
        node.id for line in nodes for node in ast.walk(line)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    )  # fmt: skip
    return dict.fromkeys(name for name in names if name not in ("torch", "nn", "F", "self", "math"))


def written(tensor):
    """An expression of an input like `tensor`."""
    if not isinstance(tensor, torch.Tensor):
        raise LeftOut("an input that is no tensor")
    sizes = ", ".join(map(str, tensor.shape)) or "()"
    if tensor.dtype == torch.float32:
        return f"torch.randn({sizes})"
    if tensor.dtype == torch.bool:
        return f"torch.rand({sizes}) < 0.5"
    raise LeftOut("an input of another type")


def part_of(tree, rng):
    """A range of the forward's statements; what is read and not defined in it becomes an input."""
    values = values_of(tree)
    (forward,) = methods_of(tree, "forward")
    body = [line for line in forward.body if isinstance(line, ast.Assign)]
    if len(body) < 2 or any(not isinstance(line.targets[0], ast.Name) for line in body):
        raise LeftOut("one statement")
    first = rng.choice([0, 0, rng.randrange(len(body))])
    kept = body[first : rng.randint(first + 1, len(body))]
    defined = [line.targets[0].id for line in kept]
    if len(set(defined)) < len(defined):
        raise LeftOut("a name of two values")
    read = read_by(kept)
    results = [
        name for name in defined if name not in read_by(kept) and isinstance(values[name], torch.Tensor)
    ]
    inputs = [name for name in read if name not in defined and name in values]
    if not results or not inputs or len(inputs) > len(INPUT_NAMES):
        raise LeftOut("no results or inputs")
    own = {argument.arg: index for index, argument in enumerate(forward.args.args[1:])}
    (listed,) = [line for line in tree.body if getattr(line, "name", "") == "get_inputs"]
    texts = [ast.unparse(value) for value in listed.body[-1].value.elts]
    texts = [texts[own[name]] if name in own else written(values[name]) for name in inputs]
    names = {name: INPUT_NAMES[index] for index, name in enumerate(inputs)}
    names |= {name: "h" if index == 0 else f"h{index + 1}" for index, name in enumerate(defined)}
    forward.args.args = [ast.arg("self"), *(ast.arg(names[name]) for name in inputs)]
    forward.body = [Renamer(names, {}).visit(line) for line in kept]
    forward.body.append(ast.parse("return " + ", ".join(names[name] for name in results)).body[0])
    listed.body = ast.parse(f"return [{', '.join(texts)}]").body
    return tree


def without_unused(tree):
    """Attributes that the forward does not read go, and an empty __init__ with them."""
    model = model_of(tree)
    (forward,) = methods_of(tree, "forward")
    read = {node.attr for node in ast.walk(forward) if isinstance(node, ast.Attribute)}
    for method in methods_of(tree, "__init__"):
        method.body = [line for line in method.body if (attribute_of(line) or (None,))[0] in read | {None}]
        if not any(attribute_of(line) for line in method.body):
            model.body.remove(method)
    return tree


def text_of(tree):
    """As harvest writes a task: an input a line, two lines between functions."""
    uses = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    heads = ["import math"] if "math" in uses else []
    heads += ["import torch", "from torch import nn"]
    heads += ["import torch.nn.functional as F"] if "F" in uses else []
    (listed,) = [line for line in tree.body if getattr(line, "name", "") == "get_inputs"]
    inputs = "".join(f"        {ast.unparse(value)},\n" for value in listed.body[-1].value.elts)
    init = next(line for line in tree.body if getattr(line, "name", "") == "get_init_inputs")
    methods = "\n\n".join(
        "    " + ast.unparse(method).replace("\n", "\n    ") for method in model_of(tree).body
    )
    methods = re.sub(r"return \((.*,.*)\)$", r"return \1", methods)
    return (
        "\n".join(heads) + f"\n\n\nclass Model(nn.Module):\n{methods}\n\n\n"
        f"def get_inputs():\n    return [\n{inputs}    ]\n\n\n{ast.unparse(init)}\n"
    )


def varied(code, names, rng):
    tree = ast.parse(code)
    (forward,) = methods_of(tree, "forward")
    if forward.args.vararg or forward.args.defaults or len(tree.body) < 4:
        raise LeftOut("another form")
    inputs = [line for line in tree.body if getattr(line, "name", "") == "get_inputs"]
    sizes = {node.value for node in ast.walk(inputs[0]) if isinstance(node, ast.Constant)}
    sizes = sorted(size for size in sizes if type(size) is int and size > 1)
    if sizes and rng.random() < 0.8:
        tree = with_other_sizes(tree, sizes, rng)
    tree = renamed(tree, names, rng)
    if rng.random() < 0.5:
        tree = part_of(ast.fix_missing_locations(copy.deepcopy(tree)), rng)
    text = text_of(without_unused(ast.fix_missing_locations(tree)))
    results = values_of(ast.parse(text))["return"]
    results = results if isinstance(results, tuple) else (results,)
    if not all(isinstance(result, torch.Tensor) and result.numel() for result in results):
        raise LeftOut("results that are no tensors")
    if not all(torch.isfinite(result).all() for result in results if result.is_floating_point()):
        raise LeftOut("results that are not finite")
    return text


def anonymous(code):
    """The text with names by order of appearance: equal for two modules that differ in names alone."""
    tree = ast.parse(code)
    attributes = {name: f"attribute{index}" for index, name in enumerate(attributes_of(tree))}
    (forward,) = methods_of(tree, "forward")
    local = [argument.arg for argument in forward.args.args[1:]]
    local += [
        node.id for node in ast.walk(forward) if isinstance(node, ast.Name) and type(node.ctx) is ast.Store
    ]
    local = {name: f"local{index}" for index, name in enumerate(dict.fromkeys(local))}
    return ast.unparse(Renamer(local, attributes).visit(tree))


def tasks_of(path, split="train"):
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    return [line for line in lines if line["form"] == "subgraph" and line["split"] == split]


tasks, names_of_layers = [], {}


def begin(path):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, slow)
    found = collections.defaultdict(dict)
    tasks.extend(tasks_of(path))
    for task in tasks:
        for name, kind in attributes_of(ast.parse(task["code"])).items():
            found[kind][name] = True
    names_of_layers.update({kind: list(names) for kind, names in found.items()})


def slow(*_):
    raise TimeoutError("slow")


def attempt(seed):
    rng = random.Random(seed)
    task = rng.choice(tasks)
    signal.alarm(3)
    try:
        return task["id"], varied(task["code"], names_of_layers, rng), None
    except LeftOut as error:
        return task["id"], None, str(error)
    except Exception as error:
        return task["id"], None, type(error).__name__
    finally:
        signal.alarm(0)


def made(seed):
    try:
        return attempt(seed)
    except TimeoutError:  # the alarm rang on the way out
        return "", None, "TimeoutError"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", help="train.jsonl of nereid harvest")
    parser.add_argument("out", help="file of the varied tasks, a JSON object a line")
    parser.add_argument("--without", help="held_out.jsonl, whose modules are left out")
    parser.add_argument("--count", type=int, default=1000, help="number of tasks (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all draws (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="end after so many seconds (default: never)"
    )
    options, began = parser.parse_args(), time.monotonic()
    known, left_out, first = set(), collections.Counter(), options.seed << 32
    held_out = tasks_of(options.without, "held-out") if options.without else []
    held_out = {anonymous(task["code"]) for task in held_out}
    with multiprocessing.Pool(options.jobs, begin, (options.tasks,)) as pool, open(options.out, "w") as file:
        for number, (source, code, why) in enumerate(
            pool.imap(made, range(first, first + 16 * options.count), chunksize=16)
        ):
            if why or code in known:
                left_out[why or "came before"] += 1
            elif anonymous(code) in held_out:
                left_out["held out"] += 1
            else:
                known.add(code)
                line = {
                    "id": f"varied-{options.seed}-{number}",
                    "code": code,
                    "from": source,
                    "split": "train",
                }
                file.write(json.dumps(line) + "\n")
            if len(known) == options.count or time.monotonic() - began > options.seconds:
                pool.terminate()
                break
    print(json.dumps({"tasks": len(known), "left_out": dict(left_out.most_common())}))


if __name__ == "__main__":
    main()
