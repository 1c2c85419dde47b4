"""What of a module and of Python around it forward may have read, and whether it is still as it was."""

import collections
import functools
import operator
import os
import random
import types

import torch

from . import reached

_SIMPLE = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_LONGEST = 20000  # values that are compared before a call
_ROUNDS = 8  # of what functions and classes that are reached lead to
_DEEPEST = 8  # containers and objects in each other

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
    "_is_full_backward_hook", "call_super_init", "_compiled_call_impl", *_HOOKS,
}  # fmt: skip


def unwatched(module):
    """Why the module cannot be exported as it is; None where it can."""
    for name, part in module.named_modules():
        if name and any(getattr(part, hooks) for hooks in _HOOKS):
            return f"module {name} has hooks"
        if type(part).__getattribute__ is not object.__getattribute__ or isinstance(
            part, torch.jit.ScriptModule
        ):
            return (
                f"{f'module {name}' if name else 'the module'} of type {type(part).__name__}: its attributes "
                f"cannot be watched"
            )
    for kind, values in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, value in values:
            if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                return f"{kind} {name} of type {type(value).__name__}"
    return None


def _same(value, now):
    """Whether an attribute is the same object as it was, an equal number or text, or a container of those:
    torch.export makes a module's containers anew."""
    if now is value:
        return True
    if type(now) is not type(value):
        return False
    if type(value) in (list, tuple):
        return len(now) == len(value) and all(map(_same, value, now))
    if type(value) is dict:
        return now.keys() == value.keys() and all(_same(held, now[key]) for key, held in value.items())
    return (
        isinstance(value, _SIMPLE)
        and (now == value or now != now and value != value)
        and (value != 0 or str(now) == str(value))  # a zero equals a negative zero
    )


class _Items:
    """What a dictionary holds, whatever its class makes of it, as transformers' ACT2FN does."""

    def __init__(self, held):
        self._held = held

    def __getitem__(self, key):
        return dict.__getitem__(self._held, key)


class Watched:
    """What of a module's Python state forward may have read, and a fast comparison with what it is now:
    attributes, attributes of its classes, and the globals and closures of its functions (reached.py)."""

    def __init__(self, module, without=()):
        """`without`: attributes of modules that are left out."""
        self._entries, self._sizes, self._versions, self._contents = [], [], [], []
        self._owners = []  # (object, its class, the dictionary of its attributes, place)
        self._seen, self._functions = set(), []
        self._state = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
        self.outside = {}  # place: number or text that lies outside of the module, which pickles leave out
        self._modules, self._without, self._classes, self._bases = [], without, {}, set()
        self.unknown = None  # why some of it cannot be watched
        self.parts = list(module.modules())
        self._inside = {id(part) for part in self.parts}  # and those outside that are watched
        for name, part in module.named_modules():
            self._watch_module(part, name, 0)
        self._watch_outside(module)
        self._holders, self._keys, self._values = [[entry[i] for entry in self._entries] for i in range(3)]

    def _watch_module(self, part, name, depth):
        own, prefix = vars(part), f"{name}." if name else ""
        self._modules.append((name, part, part._modules, tuple(part._modules.items())))
        self._classes[type(part)] = None
        self._owners.append((part, type(part), own, name or "the module"))
        self._sizes.append((name, own, len(own)))
        for held in (part._parameters, part._buffers):
            self._sizes.append((name, held, len(held)))
            for key, value in held.items():
                if value is None:  # forward tests for that
                    self._entries.append((held, key, None, prefix + key))
                elif id(value) not in self._state:
                    self._watch(held, key, value, prefix + key, depth)
        for key, value in own.items():
            if (
                key not in _OWN
                and key not in self._without
                and (key[:8] != "_nereid_" or key == "_nereid_original")
            ):
                self._watch(own, key, value, prefix + key, depth)

    def _watch_modules_outside(self, module, where, depth):
        """A module that is held by what is no module, as a list, and its submodules."""
        for name, part in module.named_modules():
            if id(part) not in self._inside:
                self._inside.add(id(part))
                if isinstance(part, torch.jit.ScriptModule) or any(getattr(part, hooks) for hooks in _HOOKS):
                    self.unknown = (
                        f"{_place(where)} is a scripted module or has hooks, which cannot be watched"
                    )
                    return
                self._watch_module(part, f"{where}.{name}" if name else where, depth + 1)

    def _watch_class(self, cls):
        """Values in the classes of an object, which stand for its attributes. Functions are left out."""
        for base in cls.__mro__:
            if base not in self._bases and not reached.is_foreign(base):
                self._bases.add(base)
                held = reached.ClassAttributes(base)
                for key, value in vars(base).items():
                    if not key.startswith("__") and isinstance(
                        value, (*_SIMPLE, list, tuple, dict, torch.Tensor)
                    ):
                        self._watch(held, key, value, f"{base.__qualname__}.{key}", _DEEPEST - 1)

    def _watch_outside(self, module):
        """Classes, globals and closures, and what these lead to."""
        self._code, self._caches, seen = [], [], set()
        for _ in range(_ROUNDS):
            classes = {cls: None for cls in self._classes if cls not in seen}
            functions = [function for function in self._functions if function not in seen]
            if not classes and not functions:
                return
            seen |= {*classes, *functions}
            found = reached.values(classes, functions)
            self._watch_reached(found, seen)
        self.unknown = "what it reads leads too far to be watched"

    def _watch_reached(self, found, seen):
        if found.clock:
            self.unknown = "forward reads a clock, or may do so"
        if found.environment:
            self._contents.append((os.environ, dict, dict(os.environ), "the environment"))
        self._caches += [(cache, cache.cache_info().currsize) for cache in found.caches]
        for function in found.functions():
            seen.add(function)
            self._code.append((function, *_code_of(function)))  # autoreload replaces it in place
            for held, what in ((function.__kwdefaults__, "default"), (vars(function), "attribute")):
                place = f"the {what} of {function.__qualname__}"
                for inner, name, item, where in self._items({} if held is None else held, place):
                    self._watch(inner, name, item, where, 1)
        for holder, key, value, where in found.found:
            if isinstance(value, (dict, list, set, collections.deque)) and len(value) > 64:
                self._entries.append((holder, key, value, where))  # a registry
            else:
                self._watch(holder, key, value, where, _DEEPEST - 1)
            if isinstance(value, _SIMPLE):
                self.outside[where] = value

    def _watch(self, holder, key, value, where, depth):
        if len(self._entries) > _LONGEST:
            self.unknown = "the module has too many attributes to watch"
            return
        self._entries.append((holder, key, value, where))
        if isinstance(value, torch.Tensor):
            if id(value) not in self._state:  # kernels read a parameter's values in each call
                self._versions.append((value, _version_key(value), where))
            return
        if isinstance(value, torch.nn.Module):
            self._watch_modules_outside(value, where, depth)
        if callable(value) and hasattr(value, "__code__"):
            self._functions.append(value)
        for name in _parts_of_callable(value):
            held = reached.Attributes(value)
            self._watch(held, name, held[name], f"{where}.{name}", depth + 1)
        call = reached.call_of(value)
        if call is not None:
            self._functions.append(call)
        if (
            isinstance(value, _SIMPLE)
            or isinstance(value, (torch.nn.Module, type))
            or (callable(value) and call is None)
            or id(value) in self._seen
            or depth > _DEEPEST
        ):
            return
        self._seen.add(id(value))
        for inner, name, item, place in self._items(value, where):
            self._watch(inner, name, item, place, depth + 1)

    def _items(self, value, where):
        """(holder, key, value, place) of each value in a container or an object."""
        if isinstance(value, dict):
            self._sizes.append((where, value, len(value)))
            held = value if type(value).__getitem__ is dict.__getitem__ else _Items(value)
            return [(held, key, item, f"{where}[{key!r}]") for key, item in dict.items(value)]
        if isinstance(value, (list, tuple, collections.deque)):
            self._sizes.append((where, value, len(value)))
            return [(value, i, item, f"{where}[{i}]") for i, item in enumerate(value)]
        if isinstance(value, set):
            self._contents.append((value, frozenset, frozenset(value), where))
        elif isinstance(value, bytearray):
            self._contents.append((value, bytes, bytes(value), where))
        elif (form := _generator_state(value)) is not None:
            self._contents.append((value, form, form(value), where))
        elif hasattr(type(value), "__next__"):
            self.unknown = f"{_place(where)} is an iterator, which cannot be watched"
        elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            if value.nbytes > 1 << 20 or value.dtype.hasobject:
                self.unknown = f"{_place(where)} is an array that is too large to watch"
            else:
                self._contents.append((value, _bytes_of_array, _bytes_of_array(value), where))
        found = []
        if isinstance(getattr(value, "__dict__", None), dict):
            own = vars(value)
            if value.__dict__ is own:
                self._owners.append((value, type(value), own, where))
            self._sizes.append((where, own, len(own)))
            self._watch_class(type(value))
            found = [(own, key, item, f"{where}.{key}") for key, item in own.items()]
        slots = reached.Attributes(value)
        return [*found, *((slots, key, slots[key], f"{where}.{key}") for key in slots.slots())]

    def differs(self):
        """What is another than it was, as a sentence; None where all is the same."""
        for name, part, modules, items in self._modules:
            if (
                part._modules is not modules
                or len(modules) != len(items)
                or any(modules.get(key) is not value for key, value in items)
            ):
                return (
                    f"{f'module {name}' if name else 'the module'}: expected the submodules that it had, got "
                    f"others"
                )
            if name and (
                part._forward_hooks
                or part._forward_pre_hooks
                or part._backward_hooks
                or part._backward_pre_hooks
            ):
                return f"module {name}: expected no hooks, got some"
        for value, cls, own, where in self._owners:
            if type(value) is not cls:
                return (
                    f"{where}: expected an object of class {cls.__qualname__}, got one of "
                    f"{type(value).__qualname__}"
                )
            if value.__dict__ is not own:
                return f"{where}: expected the dictionary of attributes that it had, got another one"
        for where, holder, size in self._sizes:
            if len(holder) != size and _counted(holder) != size:
                return f"{where or 'the module'}: expected {size} attributes or items, got {len(holder)}"
        try:
            now = list(map(operator.getitem, self._holders, self._keys))
            same = all(map(operator.is_, now, self._values))
        except (KeyError, IndexError):
            same = False
        if not same and (found := self._entry_differs()) is not None:
            return found
        for function, code, defaults, more in self._code:
            if (
                function.__code__ is not code
                or function.__defaults__ is not defaults
                or function.__kwdefaults__ is not more
            ):
                return (
                    f"the function {function.__qualname__}: expected its code and defaults as they were, got "
                    f"others"
                )
        for tensor, look, where in self._versions:
            if _version_key(tensor) != look:
                return f"{_place(where)}: expected the tensor's values as they were, got changed ones"
        for value, form, content, where in self._contents:
            if form(value) != content:
                return f"{_place(where)}: expected the items that it had, got others"
        return None

    def lists(self):
        """What `differs` compares, for CallGuard of the native extension. All has just been compared."""
        entries = [(getattr(holder, "held", holder), key, holder[key]) for holder, key, *_ in self._entries]
        sizes = [(holder, len(holder)) for _, holder, _ in self._sizes]
        for name, part, modules, items in self._modules:
            own = vars(part)
            entries += [(own, key, own[key]) for key in ("_modules", "_parameters", "_buffers")]
            entries += [(modules, key, value) for key, value in items]
            sizes.append((modules, len(items)))
            if name:
                entries += [(own, hooks, own[hooks]) for hooks in _HOOKS]
                sizes += [(own[hooks], 0) for hooks in _HOOKS]
        code = [
            (function, name, value)
            for function, *values in self._code
            for name, value in zip(("__code__", "__defaults__", "__kwdefaults__"), values)
        ]
        answers = [(_version_key, (tensor,), look) for tensor, look, _ in self._versions]
        answers += [(form, (value,), content) for value, form, content, _ in self._contents]
        owners = [(value, cls, own) for value, cls, own, _ in self._owners]
        return {"owners": owners, "entries": entries, "sizes": sizes, "attributes": code, "answers": answers}

    def replaced(self):
        """Whether another container, which is equal, stands for one whose items are watched."""
        return any(
            holder[key] is not value and not isinstance(value, _SIMPLE)
            for holder, key, value, _ in self._entries
        )

    def cached(self):
        """The caches of functools that hold more than they did."""
        return [cache for cache, size in self._caches if cache.cache_info().currsize != size]

    def restore(self):
        """Takes back what forward left behind while it was traced: tensors in it have no values."""
        for cache in self.cached():
            cache.cache_clear()
        known = {}
        for holder, key, value, _ in self._entries:
            if type(holder) in (dict, list):
                known.setdefault(id(holder), {})[key] = value
        modules = {id(vars(part)) for part in self.parts}
        for _, holder, size in self._sizes:
            held = known.get(id(holder), {})
            if type(holder) is list and (
                len(holder) != size or any(holder[i] is not v for i, v in held.items())
            ):
                holder[:] = [held[i] for i in range(size)]
            elif type(holder) is dict and id(holder) in modules:  # torch.export's own changes, it takes back
                for key in [k for k, v in holder.items() if k not in held and _traced(v)]:
                    del holder[key]
            elif type(holder) is dict and len(held) == size:
                for key in holder.keys() - held.keys():
                    del holder[key]
        for holder, key, value, _ in self._entries:
            if type(holder) is dict and holder.get(key, self) is not value:
                holder[key] = value
            elif isinstance(holder, (reached.Cell, reached.ClassAttributes)) and holder[key] is not value:
                holder[key] = value

    def _entry_differs(self):
        for holder, key, value, where in self._entries:
            try:
                now = holder[key]
            except (KeyError, IndexError):
                return f"{_place(where)}: expected {value!r:.80}, got none"
            if not _same(value, now):
                return f"{_place(where)}: expected {value!r:.80}, got {now!r:.80}"
        return None


def _traced(value):
    return isinstance(value, torch.Tensor) and type(value) not in (
        torch.Tensor,
        torch.nn.Parameter,
        torch.nn.Buffer,
    )


def _parts_of_callable(value):
    """Attributes of a callable without attributes of its own that it calls with."""
    if isinstance(value, functools.partial):
        return "func", "args", "keywords"
    return ("__self__",) if isinstance(value, types.MethodType) else ()


def _code_of(function):
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _version_key(tensor):
    """What a change of a tensor changes, but for one of its values that PyTorch does not count (`.data`)."""
    if tensor.layout is not torch.strided or _traced(tensor):
        return tensor._version, tensor.layout, tensor.shape
    return tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()


def _generator_state(value):
    """The function that reads the state of a generator of random numbers; None for another object."""
    if isinstance(value, random.Random):
        return lambda held: held.getstate()
    if isinstance(value, torch.Generator):
        return lambda held: bytes(held.get_state().tolist())
    if type(value).__module__.startswith("numpy.random"):
        held = getattr(value, "bit_generator", getattr(value, "_bit_generator", None))
        return None if held is None else (lambda _: repr(held.state))
    return None


def _counted(holder):
    """The number of attributes or items without special ones, which torch.jit.script adds."""
    return sum(not (isinstance(key, str) and key.startswith("__")) for key in holder)


def _place(where):
    return where if where.startswith("the ") else f"attribute {where}"


def _bytes_of_array(array):
    return array.dtype.str, array.shape, array.tobytes()
