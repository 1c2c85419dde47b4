"""Names as authors choose them: the words of torch's own arguments, alone and in pairs.

A writer that draws from a short list teaches a model the list; from these thousands it teaches to copy.
"""

import ast
import builtins
import functools
import keyword
import pathlib
import re

import torch


@functools.cache
def words():
    """Names of arguments and variables in torch.nn, sorted; none that this folder's own text assigns."""
    found = set()
    for file in sorted(pathlib.Path(torch.nn.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    own = "".join(file.read_text() for file in sorted(pathlib.Path(__file__).parent.glob("*.py")))
    keywords = set(re.findall(r"\b([a-z]\w*) ?=(?!=)", own))
    taken = keywords | set(dir(builtins)) | set(keyword.kwlist) | {"torch", "nn", "math", "self"}
    taken |= set(dir(torch.nn.Module()))
    plain = {name for name in found if re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name)}
    return sorted(name for name in plain - taken if 1 < len(name) <= 18)


def drawn(pick):
    """One name: a word of torch's, two of them, or a word and a number."""
    form = pick("one", "one", "one", "two", "number")
    if form == "two":
        name = f"{pick(*words())}_{pick(*words())}"
        return name if len(name) <= 20 else drawn(pick)
    return pick(*words()) + (str(pick(1, 2, 3)) if form == "number" else "")
