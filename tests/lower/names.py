"""Names that a written file uses without a definition: `undefined(text)`.

A kernel is read as Triton compiles it: what a loop or one branch alone defines is gone after it. Elsewhere
Python's rule holds, that a name of the function or of the module will do.
"""

import ast
import builtins

NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def undefined(text):
    """(line, name) of each use, in the order of the lines."""
    tree = ast.parse(text)
    known = set(dir(builtins)) | {"__name__", "__file__"} | bound(tree.body)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_kernel(node):
            _block(node.body, known | _parameters(node.args), found)
    _scope(tree.body, known, found)
    return sorted(set(found))


def is_kernel(function):
    return any(ast.unparse(decorator).startswith("triton.") for decorator in function.decorator_list)


def bound(statements):
    """What statements bind, those inside of others too, but for nested functions and classes."""
    names = set()
    work = list(statements)
    while work:
        node = work.pop()
        if isinstance(node, NESTED):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        work += ast.iter_child_nodes(node)
    return names


def _parameters(arguments):
    every = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {argument.arg for argument in every if argument}


def _uses(node, known, found):
    """Loads below an expression that nothing binds."""
    if isinstance(node, ast.Lambda):
        return _uses(node.body, known | _parameters(node.args), found)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        known = known | {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
        found.append((node.lineno, node.id))
    for child in ast.iter_child_nodes(node):
        _uses(child, known, found)


def _scope(statements, known, found):
    """Python's rule: any binding of the scope will do."""
    for node in statements:
        if isinstance(node, ast.FunctionDef):
            for part in [*node.decorator_list, node.args, *filter(None, [node.returns])]:
                _uses(part, known, found)  # defaults and annotations
            if not is_kernel(node):
                _scope(node.body, known | _parameters(node.args) | bound(node.body), found)
        elif isinstance(node, ast.ClassDef):
            for part in [*node.bases, *node.decorator_list]:
                _uses(part, known, found)
            inside = known | {"__class__"}
            _scope([n for n in node.body if isinstance(n, NESTED)], inside, found)
            _scope([n for n in node.body if not isinstance(n, NESTED)], inside | bound(node.body), found)
        else:
            _statement(node, known, found)


def _statement(node, known, found):
    for _, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.stmt):
                _scope([part], known, found)
            elif isinstance(part, ast.ExceptHandler):
                if part.type is not None:
                    _uses(part.type, known, found)
                _scope(part.body, known, found)
            elif isinstance(part, ast.AST):
                _uses(part, known, found)


def _block(statements, known, found):
    """Triton's rule; returns what is defined after the block."""
    known = set(known)
    for node in statements:
        if isinstance(node, ast.For):
            _uses(node.iter, known, found)
            _block(node.body, known | bound([node.target]), found)
        elif isinstance(node, ast.While):
            _uses(node.test, known, found)
            _block(node.body, known, found)
        elif isinstance(node, ast.If):
            _uses(node.test, known, found)
            then, otherwise = _block(node.body, known, found), _block(node.orelse, known, found)
            known = then & otherwise
        elif isinstance(node, ast.AugAssign):
            _uses(node.value, known, found)
            for name in ast.walk(node.target):
                if isinstance(name, ast.Name) and name.id not in known:
                    found.append((name.lineno, name.id))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                _uses(target, known, found)  # an index of the target
            if node.value is not None:
                _uses(node.value, known, found)
            known |= bound([node])
        else:
            _uses(node, known, found)
    return known
