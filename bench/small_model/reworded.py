"""Tasks in other words, for a model's robustness: each folder of OUT holds them changed in one way.

    python3 bench/small_model/reworded.py TASKS... OUT [--seed 1]
    python3 bench/small_model/evaluate.py MODEL RESULTS --operators none --from-text --no-compiler \\
      --files OUT/plain --files OUT/renamed ...

TASKS are folders of files, or JSONL files with `code`. The ways:

  plain      parsed and written again: what the others are compared with
  renamed    arguments, variables and attributes of Model have other names
  reordered  independent statements of forward() and of __init__ change places; get_init_inputs comes first
  commented  comments, docstrings and unused imports that say nothing about the program
  respelled  other spellings of the same calls: methods for functions, keywords for positions

A task is in the folder of a way where that changes its text and not its meaning: the trace's results, as
expressions of inputs and of the module's tensors, stay the same. The file reworded.json of OUT counts what
was left out, by way and reason. With --results FILE it compares the tasks of each way with the same tasks in
plain words: python3 bench/small_model/reworded.py OUT --results RESULTS/results.jsonl
"""

import argparse
import ast
import collections
import hashlib
import json
import os
import pathlib
import random
import subprocess
import tempfile

from evaluate import NEREID

WORDS = (
    "alder birch cedar dune ember fjord grove heath inlet juniper kelp larch moss nettle onyx pine".split()
)
REMARKS = [
    "see the notes of last week", "unchanged since the first version", "checked by hand", "do not edit",
    "the caller keeps the result", "kept for later", "numbers are from the table",
    "half of this is for tests",
]  # fmt: skip
SYNONYMS = {  # a call's name: (positions that become keywords)
    "softmax": ("dim",), "log_softmax": ("dim",), "sum": ("dim",), "mean": ("dim",), "cumsum": ("dim",),
    "argmax": ("dim",),
    "argmin": ("dim",), "amax": ("dim",), "amin": ("dim",), "unsqueeze": ("dim",), "squeeze": ("dim",),
    "clamp": ("min", "max"),
    "flatten": ("start_dim", "end_dim"), "topk": ("k", "dim"), "sort": ("dim",), "gather": ("dim", "index"),
    "cat": ("dim",), "stack": ("dim",), "chunk": ("chunks", "dim"), "logsumexp": ("dim",),
}  # fmt: skip
# Functions of torch that are methods of their first argument with the same further ones.
METHODS = set(SYNONYMS) - {"cat", "stack"} | set(
    "relu tanh sigmoid abs exp sqrt rsqrt matmul bmm transpose permute neg sin cos pow".split()
)
LAYERS = {
    "Linear": ("in_features", "out_features"), "Conv1d": ("in_channels", "out_channels", "kernel_size"),
    "Conv2d": ("in_channels", "out_channels", "kernel_size"),
    "Conv3d": ("in_channels", "out_channels", "kernel_size"),
    "LayerNorm": ("normalized_shape",), "BatchNorm1d": ("num_features",), "BatchNorm2d": ("num_features",),
    "GroupNorm": ("num_groups", "num_channels"), "Embedding": ("num_embeddings", "embedding_dim"),
    "Softmax": ("dim",),
}  # fmt: skip


def model_of(tree):
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model")


def methods_of(tree, name):
    return [node for node in model_of(tree).body if isinstance(node, ast.FunctionDef) and node.name == name]


class Renamer(ast.NodeTransformer):
    """Other names of locals and of attributes of self."""

    def __init__(self, names, attributes):
        self.names, self.attributes = names, attributes

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        self.generic_visit(node)
        node.arg = self.names.get(node.arg, node.arg)
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            node.attr = self.attributes.get(node.attr, node.attr)
        return node


def renamed(tree, rng, words=WORDS):
    words = list(words)
    rng.shuffle(words)
    fresh = (word + (str(turn) if turn else "") for turn in range(9) for word in words)
    attributes = {}
    for node in ast.walk(model_of(tree)):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
        ):
            if node.value.id == "self" and node.attr not in attributes:
                attributes[node.attr] = next(fresh)
    for function in methods_of(tree, "forward"):
        bound = [each.arg for each in function.args.args if each.arg != "self"]
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in bound:
                bound.append(node.id)
        renamer = Renamer({name: next(fresh) for name in bound}, {})
        function.args = renamer.visit(function.args)
        function.body = [renamer.visit(each) for each in function.body]
    model = model_of(tree)
    model.body = [Renamer({}, attributes).visit(each) for each in model.body]


def touched(statement):
    """Names that a statement reads, and those that it binds or may change."""
    reads, writes = set(), set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            (reads if isinstance(node.ctx, ast.Load) else writes).add(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            (reads if isinstance(node.ctx, ast.Load) else writes).add("self." + node.attr)
    calls_in_place = any(
        isinstance(node, ast.Attribute) and node.attr.endswith("_") for node in ast.walk(statement)
    )
    simple = isinstance(statement, ast.Assign) and not calls_in_place
    return (
        reads,
        writes,
        simple
        and all(isinstance(target, (ast.Name, ast.Attribute, ast.Tuple)) for target in statement.targets),
    )


def swapped(body, rng):
    """Neighbours that do not touch the same names change places, some of them."""
    body = body[:]
    for at in range(len(body) - 1):
        (r1, w1, one), (r2, w2, two) = touched(body[at]), touched(body[at + 1])
        draws = any("rand" in ast.dump(each) or "nn" in ast.dump(each) for each in body[at : at + 2])
        if one and two and not draws and not (w1 & (r2 | w2) or w2 & r1) and rng.random() < 0.8:
            body[at], body[at + 1] = body[at + 1], body[at]
    return body


def reordered(tree, rng):
    for name in ("forward", "__init__"):
        for function in methods_of(tree, name):
            function.body = swapped(function.body, rng)
    model = model_of(tree)
    init = [n for n in model.body if isinstance(n, ast.FunctionDef)]
    rest = [n for n in model.body if n not in init]
    model.body = rest + init[::-1]
    last = [
        n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in ("get_init_inputs", "get_inputs")
    ]
    tree.body = [n for n in tree.body if n not in last] + last[::-1]


def commented(text, rng, remarks=REMARKS):
    out = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() and indent and rng.random() < 0.5:
            out.append(f"{indent}# {rng.choice(remarks)}")
        out.append(line + (f"  # {rng.choice(remarks)}" if line.strip() and rng.random() < 0.25 else ""))
        if line.startswith("class Model"):
            out.append(f'    """{rng.choice(remarks).capitalize()}. {rng.choice(remarks).capitalize()}."""\n')
    return "import functools\n" + "\n".join(out)


class Respeller(ast.NodeTransformer):
    def visit_Call(self, node):
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute) or any(
            isinstance(each, ast.Starred) for each in node.args
        ):
            return node
        name, of = function.attr, ast.unparse(function.value)
        is_function = of in ("torch", "F", "torch.nn.functional", "nn.functional")
        if of in ("nn", "torch.nn") and name in LAYERS:
            keywords, before = LAYERS[name], 0
        else:
            keywords, before = SYNONYMS.get(name, ()), 1 if is_function else 0
            if of.startswith("nn") or (name == "clamp" and len(node.args) > before + 2):
                return node
        further = node.args[before:]
        if (
            keywords
            and len(further) <= len(keywords)
            and all(not isinstance(each, ast.Starred) for each in further)
        ):
            node.keywords = [ast.keyword(key, each) for key, each in zip(keywords, further)] + node.keywords
            node.args = node.args[:before]
        if is_function and name in METHODS and len(node.args) >= 1:
            node.func = ast.Attribute(node.args.pop(0), name, ast.Load())
        return node


def respelled(tree, _):
    model = model_of(tree)
    model.body = [Respeller().visit(each) for each in model.body]


WAYS = {"renamed": renamed, "reordered": reordered, "respelled": respelled}


def versions(source, seed):
    """The text of each way."""
    texts = {"plain": ast.unparse(ast.parse(source)) + "\n"}
    for way, change in WAYS.items():
        tree = ast.parse(source)
        change(tree, random.Random(f"{seed} {way}"))
        texts[way] = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    texts["commented"] = commented(texts["plain"], random.Random(f"{seed} commented"))
    return texts


def meaning(trace):
    """The results of the last forward() as expressions of its inputs and of the module's tensors: what no
    names, and not the order of independent statements, change."""
    values, known = trace["values"], {}
    forward = [phase for phase in trace["phases"] if phase["phase"] == "forward"][-1]

    storages = [values[each["value"]]["s"] for each in trace["state"]]

    def of_state(value):
        where = storages.index(value["s"]) if value["s"] in storages else "constant"
        return [where, value["n"], value["d"], value["o"], value["t"]]

    def said(node):
        if isinstance(node, list):
            return [said(each) for each in node]
        if not isinstance(node, dict):
            return node
        if set(node) == {"v"}:
            return known.setdefault(node["v"], of_state(values[node["v"]]))
        return {key: said(each) for key, each in node.items()}

    def name(node, text, path=""):
        if isinstance(node, dict) and set(node) == {"v"}:
            known[node["v"]] = text + path
        elif isinstance(node, (dict, list)):
            for key, each in node.items() if isinstance(node, dict) else enumerate(node):
                name(each, text, f"{path}.{key}")

    name(forward["inputs"], "input")
    for step in forward["steps"]:
        whole = json.dumps([step.get("call"), said(step.get("args")), said(step.get("kwargs"))])
        name(step.get("result"), hashlib.sha256(whole.encode()).hexdigest())
    return json.dumps(said(forward["output"]))


def traced(text):
    """What a text means, as `nereid trace` sees it in its sandbox; None where it cannot be traced."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "model.py"
        file.write_text(text)
        done = subprocess.run(
            [*NEREID, "trace", str(file), "--json"],
            capture_output=True,
            text=True,
            env={**os.environ, "NEREID_KEEP_WARM": "30"},
        )
    return meaning(json.loads(done.stdout)) if done.returncode == 0 else None


def same(texts):
    """{way: text} of those that change the plain text and not its meaning; what was left out, and why."""
    plain = traced(texts["plain"])
    if plain is None:
        return {}, ["plain: cannot be traced"]
    kept, left_out = {"plain": texts["plain"]}, []
    for way, text in texts.items():
        if way == "plain":
            continue
        if text == texts["plain"]:
            left_out.append(f"{way}: unchanged")
        elif traced(text) != plain:
            left_out.append(f"{way}: means something else")
        else:
            kept[way] = text
    return kept, left_out


def paired(path, folders):
    """Of each way: tasks, and how many are right in plain words and in these, of the same tasks."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    right = {row["task"]: row["verdict"] == "Verified" for row in rows if row["sample"] == "greedy"}
    for way in folders:
        names = [name.removeprefix(f"{way}_") for name in right if name.startswith(f"{way}_")]
        both = [
            (right[f"plain_{name}"], right[f"{way}_{name}"]) for name in names if f"plain_{name}" in right
        ]
        lost, won = sum(a and not b for a, b in both), sum(b and not a for a, b in both)
        print(f"{way}: {len(both)} tasks; right in plain words {sum(a for a, _ in both)}, so "
              f"{sum(b for _, b in both)}; {lost} lost, {won} won")  # fmt: skip


def sources_of(paths):
    for path in paths:
        if path.is_dir():
            for file in sorted(path.glob("*.py")):
                if "class Model" in (text := file.read_text()):
                    yield file.stem, text
        else:
            for number, line in enumerate(path.read_text().splitlines()):
                yield f"{path.stem}-{number:05}", json.loads(line)["code"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", type=pathlib.Path, nargs="*", help="folders of tasks, or JSONL files with `code`"
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--results",
        type=pathlib.Path,
        help="results.jsonl of evaluate.py on the folders of OUT: print pairs of counts",
    )
    args = parser.parse_args()
    if args.results:
        return paired(
            args.results,
            sorted(each.name for each in args.out.iterdir() if each.is_dir() and each.name != "plain"),
        )
    left_out, kept = collections.Counter(), collections.Counter()
    for name, source in sources_of(args.tasks):
        try:
            texts, dropped = same(versions(source, args.seed))
        except (SyntaxError, StopIteration) as error:
            texts, dropped = {}, [f"plain: {type(error).__name__}"]
        left_out.update(dropped)
        kept.update(texts.keys())
        for way, text in texts.items():
            (args.out / way).mkdir(parents=True, exist_ok=True)
            (args.out / way / f"{name}.py").write_text(text)
    report = {"tasks": dict(kept), "left_out": dict(left_out)}
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "reworded.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()
