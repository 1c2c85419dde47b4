"""The attributes of classes, globals and closures that a module's functions name in their code.

Followed are the methods of the classes, functions that these name, and functions and values in Python
modules, classes and objects that these name. Of PyTorch the functions that code names are watched, but not
what they read; the standard library is left out but for the environment and clocks, and so is what only
code reaches that is chosen by data: `getattr` with a name that is computed, files.
"""

import datetime
import functools
import os
import sys
import time
import types

import torch

from .._export import foreign

_OTHERS = {*sys.stdlib_module_names, "torch", "triton", "numpy", "nereid"} - {"__main__"}
_MOST = 2000  # values
_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.Tensor)


class Attributes:
    """An object's attributes as a mapping. They need not be in a dictionary: it may have slots."""

    def __init__(self, value):
        self._value = value

    def slots(self):
        """Names of the slots that hold something."""
        names = [name for cls in type(self._value).__mro__ for name in _slots(cls)]
        return [name for name in names if hasattr(self._value, name)]

    def __getitem__(self, name):
        try:
            return getattr(self._value, name)
        except AttributeError as error:
            raise KeyError(name) from error


class ClassAttributes:
    """A class's own attributes as a mapping, which its dictionary alone cannot write to."""

    def __init__(self, cls):
        self._cls, self.held = cls, vars(cls)

    def __getitem__(self, name):
        return self.held[name]

    def __setitem__(self, name, value):
        setattr(self._cls, name, value)


class Cell:
    """A variable of a closure as a mapping."""

    def __init__(self, cell):
        self._cell = cell

    def __getitem__(self, _):
        try:
            return self._cell.cell_contents
        except ValueError as error:
            raise KeyError("an unset variable") from error

    def __setitem__(self, _, value):
        self._cell.cell_contents = value


def _slots(cls):
    names = cls.__dict__.get("__slots__", ())
    if cls.__module__.partition(".")[0] in _OTHERS or not isinstance(names, (str, tuple, list)):
        return ()
    names = (names,) if isinstance(names, str) else names
    return [name for name in names if not name.startswith("__")]


def is_foreign(value):
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return not isinstance(home, str) or home.partition(".")[0] in _OTHERS


def _names(code):
    """Names and texts in a function's code and in the functions inside of it."""
    found = {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            found.add(constant)  # getattr(self, "name")
        elif isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def _functions_of(value):
    """The functions that an attribute of a class or an operator made by torch.library.custom_op runs."""
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, property):
        return [f for f in (value.fget, value.fset) if isinstance(f, types.FunctionType)]
    if isinstance(value, types.MethodType):
        value = value.__func__
    if isinstance(value, functools._lru_cache_wrapper):
        value = value.__wrapped__
    if isinstance(value, torch._ops.OpOverloadPacket):
        value = torch._library.custom_ops.OPDEFS.get(value._qualified_op_name)
    if isinstance(value, torch._library.custom_ops.CustomOpDef):
        value = foreign.function_of(value)
    return [value] if isinstance(value, types.FunctionType) else []


def call_of(value):
    """The function that a call of an object runs, of a class that is no one's library; None for others."""
    call = getattr(type(value), "__call__", None)
    if isinstance(value, torch.nn.Module) or is_foreign(type(value)):
        return None
    return call if isinstance(call, types.FunctionType) else None


def values(classes, functions):
    """What modules of these classes, and these functions, may read: a search that has ended."""
    search = Search()
    search.run(classes, functions)
    return search


class Search:
    """`found`: (mapping, key, value, place) of each value; whether the environment is read, and a clock; the
    caches of functools."""

    def __init__(self):
        self.found, self.queue, self.seen, self.known = [], [], set(), set()
        self.environment = self.clock = False
        self.caches = []

    def run(self, classes, functions):
        for cls in classes:
            self._class(cls, {"forward"})
        for function in functions:
            self._add(function, None)
        while self.queue and len(self.found) < _MOST:
            function, cls = self.queue.pop()
            names = _names(function.__code__)
            if cls is not None:
                self._class(cls, names)
            self._variables(function, names, cls)

    def functions(self):
        """The functions on the way."""
        return {function for function, _ in self.seen}

    def _add(self, function, cls):
        function = function.__func__ if isinstance(function, types.MethodType) else function
        if isinstance(function, types.FunctionType) and not is_foreign(function):
            if (function, cls) not in self.seen:
                self.seen.add((function, cls))
                self.queue.append((function, cls))

    def _class(self, cls, names):
        """Attributes of a module's class, by name."""
        for base in cls.__mro__:
            if base is torch.nn.Module or base is object:
                continue
            held = vars(base)
            for name in held.keys() & (names & {"forward"} if is_foreign(base) else names):
                self._value((base, ClassAttributes(base)), name, f"{base.__qualname__}.{name}", names, cls, 0)
                if is_foreign(base) and isinstance(held[name], types.FunctionType):
                    self._torch(held[name].__globals__, _names(held[name].__code__), "torch", 0)

    def _variables(self, function, names, cls):
        space = function.__globals__
        for name in names & space.keys():
            place = f"the global {space.get('__name__', '')}.{name}"
            self._value((space, space), name, place, names, None, 0)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if name != "__class__" and cell != types.CellType():  # an empty cell equals another one
                self._value((cell, Cell(cell)), name, f"the variable {name}", names, cls, 0)

    def _value(self, holder, key, place, names, cls, depth):
        """A value that code names, held by an object as a mapping; of a Python module, a class or an object
        those attributes that the code names."""
        owner, held = holder
        value = held[key]
        self._note_outside(value, names)
        if key.startswith("__") or (id(owner), key, id(cls)) in self.known:
            return
        self.known.add((id(owner), key, id(cls)))
        functions = _functions_of(value)
        if isinstance(value, functools._lru_cache_wrapper):
            self.caches.append(value)
        if isinstance(value, functools.partial):
            functions += _functions_of(value.func)
        if (call := call_of(value)) is not None:
            self._add(call, None)
        for function in functions:
            self._add(function, cls)
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] == "torch":
            self._torch(vars(value), names, place, depth)
        elif functions or isinstance(
            value, (*_PLAIN, functools.partial, torch.nn.Module, list, tuple, dict, set)
        ):
            self.found.append((held, key, value, place))
        elif depth < 3 and not is_foreign(_home(value)):
            if not isinstance(value, types.ModuleType):
                self.found.append((held, key, value, place))
            attributes = getattr(value, "__dict__", {})
            held = ClassAttributes(value) if isinstance(value, type) else attributes
            for name in names & attributes.keys():
                self._value((value, held), name, f"{place}.{name}", names, None, depth + 1)

    def _note_outside(self, value, names):
        """Whether a value that code names leads to the environment or to a clock."""
        if any(value is one for one in (os, os.environ, os.getenv)):
            self.environment |= value is not os or bool(names & {"environ", "getenv"})
        elif value is time or getattr(value, "__module__", None) == "time":
            self.clock = True
        elif any(value is one for one in (datetime, datetime.datetime, datetime.date)):
            self.clock |= bool(names & {"now", "today", "utcnow"})

    def _torch(self, space, names, place, depth):
        """PyTorch's functions that code names, which a program may replace."""
        for name in names & space.keys():
            value, key = space[name], (id(space), name)
            if key in self.known or name.startswith("__"):
                continue
            self.known.add(key)
            if isinstance(value, types.ModuleType):
                if depth < 3 and value.__name__.partition(".")[0] == "torch":
                    self._torch(vars(value), names, f"{place}.{name}", depth + 1)
            elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
                self.found.append((space, name, value, f"{place}.{name}"))
            elif isinstance(value, torch._ops.OpOverloadPacket):  # of torch.ops
                for function in _functions_of(value):
                    self._add(function, None)


def _home(value):
    return value if isinstance(value, (types.ModuleType, type)) else type(value)
