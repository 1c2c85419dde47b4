"""Files that a task's text carries after its own lines (src/nereid/base/program/included_files.h): Python
files are imported from there, data files are laid into the scratch folder."""

import base64
import importlib.abc
import importlib.machinery
import linecache
import os
import sys

_FILE, _DATA, _LINE = "# nereid-include ", "# nereid-include-data ", "#|"
_finder = None


def parse(text):
    """({path: source}, {path: bytes}) of a task's text; of several files of one path the first."""
    sources, data = {}, {}
    lines = None
    for line in text.split("\n") if "# nereid-include" in text else ():
        if line.startswith(_FILE):
            lines = sources.setdefault(line[len(_FILE) :], [])
            if lines:
                lines = []
        elif line.startswith(_DATA):
            lines = data.setdefault(line[len(_DATA) :], [])
            if lines:
                lines = []
        elif lines is not None and line.startswith(_LINE):
            lines.append(line[len(_LINE) :].removeprefix(" "))
        else:
            lines = None
    return (
        {path: "".join(line + "\n" for line in lines) for path, lines in sources.items()},
        {path: base64.b64decode("".join(lines)) for path, lines in data.items()},
    )


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports from a dictionary of files. Python's own modules, and what is imported already, come first."""

    def __init__(self, files):
        self._files = files
        self._taken = {name.partition(".")[0] for name in sys.modules} | set(sys.stdlib_module_names)
        self._loaded = []

    def find_spec(self, name, path=None, target=None):
        base = name.replace(".", "/")
        if name.partition(".")[0] in self._taken:
            return None
        for file in (f"{base}/__init__.py", f"{base}.py"):
            if file in self._files:
                package = file.endswith("/__init__.py")
                spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=package)
                spec.has_location = True
                return spec
        if any(file.startswith(base + "/") for file in self._files):  # a folder without __init__.py
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def exec_module(self, module):
        self._loaded.append(module.__name__)
        file = module.__spec__.origin
        if file is None:
            return
        text = self._files[file]
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)

    def get_source(self, name):
        return self._files.get(getattr(sys.modules.get(name), "__file__", None))

    def forget(self):
        for name in self._loaded:
            sys.modules.pop(name, None)


def install(text):
    """From now on imports find the files of this text, and of no earlier one."""
    global _finder
    if _finder is not None:
        sys.meta_path.remove(_finder)
        _finder.forget()
        _finder = None
    sources, data = parse(text)
    if sources:
        _finder = Finder(sources)
        sys.meta_path.insert(0, _finder)
    if data and os.environ.get("TMPDIR") == os.getcwd():  # the scratch folder of a sandbox
        for path, content in data.items():
            if (folder := os.path.dirname(path)) != "":
                os.makedirs(folder, exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)


def advice(error):
    """What is missing, and how it gets there: a sentence for an import or a file that failed; "" for
    others."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        file = error.name.replace(".", "/")
        return (
            f"; the Python at {sys.executable} has no package that provides {top}, and the task's folder has"
            f" no {file}.py: install the package there, or name the folder that holds {file}.py with"
            " --include"
        )
    if isinstance(error, ImportError) and "attempted relative import" in str(error):
        return (
            "; a relative import works within the task's package, which is its folder and those above it as"
            " far as each has an __init__.py: add it, or import by the package's name and name the folder"
            " that holds it with --include"
        )
    if isinstance(error, (FileNotFoundError, PermissionError)) and error.filename:
        return (
            "; a sandbox holds none of the user's files: include it with --include"
            f" {os.fspath(error.filename)!s}"
        )
    return ""
