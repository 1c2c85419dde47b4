"""Loading a module's source text, and saying where in it something happened."""

import linecache
import os
import sys
import types

from . import included_files
from .errors import Malformed

MODULE_NAME = "nereid_traced_module"
_SITE_PACKAGES = ("/site-packages/", "/dist-packages/", "/lib/python")


class Source:
    """One file of a user's, known to tracebacks and to `inspect` by its display name."""

    def __init__(self, text, path):
        self.text, self.path = text, path
        self.lines = text.splitlines(True)
        linecache.cache[path] = (len(text), None, self.lines, path)

    def line(self, number):
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def compile(self):
        try:
            return compile(self.text, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None)
            raise Malformed(f"{self.path}:{line or 1}: {type(error).__name__}: {error}") from None

    def run(self, code, overrides):
        """The module; `overrides` replaces module-level integer constants where the file assigns them."""
        included_files.install(self.text)
        module = types.ModuleType(MODULE_NAME)
        module.__file__ = os.path.basename(self.path)  # its folder is the scratch folder
        sys.modules[MODULE_NAME] = module
        exec(code if not overrides else compile_with_constants(self, overrides), module.__dict__)
        return module


def compile_with_constants(source, overrides):
    """The file with other integers at its margin: behind every assignment to one of these names stands
    another."""
    import ast

    tree = ast.parse(source.text, source.path)
    body = []
    for node in tree.body:
        body.append(node)
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        for name in sorted(names & overrides.keys()):
            value = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(int(overrides[name])))
            body.append(ast.fix_missing_locations(ast.copy_location(value, node)))
    tree.body = body
    return compile(tree, source.path, "exec", dont_inherit=True)


def display_name(filename):
    """A library's path below its installation; a user's file as it was named."""
    for marker in _SITE_PACKAGES:
        at = filename.find(marker)
        if at >= 0:
            return (
                filename[at + len(marker) :].split("/", 1)[-1]
                if marker == "/lib/python"
                else filename[at + len(marker) :]
            )
    return filename


def place(path, skip=2):
    """[file, line] of the innermost frame in the user's file, else of the innermost frame in a library."""
    frame = sys._getframe(skip)
    library = None
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename == path:
            return [path, frame.f_lineno]
        if (
            library is None
            and "/torch/" not in filename
            and "/nereid/" not in filename
            and "/triton/" not in filename
        ):
            library = frame
        frame = frame.f_back
    if (
        library is None
        or library.f_code.co_filename.endswith("zygote.py")
        or "<frozen" in library.f_code.co_filename
    ):
        return ["", 0]
    return [display_name(library.f_code.co_filename), library.f_lineno]
