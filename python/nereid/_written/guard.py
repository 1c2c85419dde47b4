"""The check, before `forward`, of all that the kernels of a file assume: the end of each file that `nereid
lower` and `nereid optimize` write.

src/nereid/compiler/output/guard.cpp copies the text below the line of dashes, and adds what was verified."""

# ---- Guard -------------------------------------------------------------------------------------------------
# The kernels above hold for what they were verified on. `_guard` checks that each call is such a call, and
# raises NotVerified where it is not. It is no part of the kernels, and computes nothing.


class NotVerified(RuntimeError):
    """A call that these kernels were not verified for; the message says what was expected and what came."""


class _Tensor:
    """A tensor as it was traced. A size or a stride is a number, or (a, b) for a * batch + b."""

    def __init__(self, dtype: str, shape: tuple, strides: tuple, device: str = "cuda") -> None:
        self.dtype, self.shape, self.strides, self.device = dtype, shape, strides, device


class _Object:
    """An object by its fields, of a class of any name."""

    def __init__(self, name: str, fields: dict | None = None) -> None:
        self.name, self.fields = name, fields or {}


def _global(name: str) -> object:
    """The function or class that a package has under "module:name"."""
    import functools
    import importlib

    module, _, path = name.partition(":")
    return functools.reduce(getattr, path.split("."), importlib.import_module(module))


class _Seen:
    """What a module looked like when it was last checked in full; never copied or stored with it."""

    known = None

    def __init__(self) -> None:
        self.batches = {}  # where any batch passes: what was known at other ones

    def __reduce__(self) -> tuple:
        return _Seen, ()


def _guard(cls: type, verified: dict, fallback: object = None, direct: object = None) -> None:
    import cmath
    import inspect
    import math
    import os
    import warnings
    import weakref

    import torch

    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    cuda = ("cuda", "cpu") if interpreted else ("cuda",)  # the interpreter runs on a CPU
    guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
    fast = getattr(guards, "TensorGuards", None)  # compares tensors in C++; without it Python does
    grad_enabled = torch.is_grad_enabled
    autocasts = getattr(torch._C, "_is_any_autocast_enabled", torch.is_autocast_enabled)
    any_batch = "batch" in verified
    several_gpus = torch.cuda.is_available() and torch.cuda.device_count() > 1
    method = "forward" if hasattr(cls, "forward") else "__call__"
    own_init, own_forward = cls.__init__, getattr(cls, method)
    of_init, of_forward = inspect.signature(own_init), inspect.signature(own_forward)
    is_module = issubclass(cls, torch.nn.Module)
    references = weakref.WeakKeyDictionary()
    recovers = fallback is not None and not verified.get("writes", True)  # else half of a write may be done
    advice = (
        "These kernels were verified for that alone: write others with `nereid optimize`, or with --fallback "
        "a file that uses PyTorch elsewhere"
    )

    # -- in full: why a call is not one of those that were verified, or None ---------------------------------

    def named(signature: inspect.Signature, given: list | tuple | dict) -> dict:
        args, kwargs = ((), given) if isinstance(given, dict) else (given, {})
        bound = signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        return dict(list(bound.arguments.items())[1:])

    def size(wanted: int | tuple, batch: int | None) -> int:
        return wanted[0] * batch + wanted[1] if isinstance(wanted, tuple) else wanted

    def tensor_text(dtype: str, shape: tuple, strides: tuple, device: object) -> str:
        return f"a {dtype} tensor of shape {tuple(shape)} and strides {tuple(strides)} on {device}"

    def tensor_differs(where: str, want: _Tensor, got: object, batch: int | None) -> str | None:
        shape = tuple(size(n, batch) for n in want.shape)
        strides = tuple(size(n, batch) for n in want.strides)
        expected = tensor_text(want.dtype, shape, strides, want.device)
        if not isinstance(got, torch.Tensor):
            return f"{where}: expected {expected}, got {value_text(got)}"
        if got.layout is not torch.strided or got.is_conj() or got.is_neg():
            lazy = "or with a lazy conjugate or sign"
            return f"{where}: expected {expected}, got one of layout {got.layout}, {lazy}"
        there = got.device.type in (cuda if want.device == "cuda" else ("cpu",))
        same = f"{got.dtype}" == f"torch.{want.dtype}" and tuple(got.shape) == shape and there
        if same and got.numel() > 0:  # the stride of a size of 1 is never read
            same = all(n == 1 or a == b for n, a, b in zip(shape, got.stride(), strides))
        if not same:
            kind = f"{got.dtype}".removeprefix("torch.")
            return (
                f"{where}: expected {expected}, got {tensor_text(kind, got.shape, got.stride(), got.device)}"
            )
        if several_gpus and got.device.type == "cuda" and got.device.index != torch.cuda.current_device():
            current = f"the current device, cuda:{torch.cuda.current_device()}"
            return f"{where}: expected a tensor on {current}, got one on {got.device}"
        return None

    def value_text(value: object) -> str:
        return (
            repr(value)[:80]
            if isinstance(value, (type(None), bool, int, float, str))
            else f"a {type(value).__name__}"
        )

    def differs(where: str, want: object, got: object, batch: int | None) -> str | None:
        if isinstance(want, _Tensor):
            return tensor_differs(where, want, got, batch)
        if isinstance(want, (list, tuple)):
            if not isinstance(got, (list, tuple)) or len(got) != len(want):
                many = f" of {len(got)}" if isinstance(got, (list, tuple)) else ""
                return (
                    f"{where}: expected a {type(want).__name__} of {len(want)}, got {value_text(got)}{many}"
                )
            found = (differs(f"{where}[{i}]", a, b, batch) for i, (a, b) in enumerate(zip(want, got)))
            return next(filter(None, found), None)
        if isinstance(want, dict):
            if not isinstance(got, dict) or set(map(str, got)) != set(map(str, want)):
                keys = sorted(map(str, got)) if isinstance(got, dict) else value_text(got)
                return f"{where}: expected the keys {sorted(map(str, want))}, got {keys}"
            given = {str(key): item for key, item in got.items()}
            found = (differs(f"{where}[{key!r}]", item, given[str(key)], batch) for key, item in want.items())
            return next(filter(None, found), None)
        if isinstance(want, _Object):
            held = got if isinstance(got, dict) else None
            found = (
                differs(
                    f"{where}.{name}",
                    item,
                    held.get(name) if held is not None else getattr(got, name, None),
                    batch,
                )
                for name, item in want.fields.items()
            )
            return next(filter(None, found), None)
        if isinstance(want, torch.device):
            same = str(got).partition(":")[0] == want.type
        else:
            nan = all(isinstance(n, (float, complex)) and cmath.isnan(n) for n in (want, got))
            same = got is want or nan or (type(got) is type(want) and got == want)
        return None if same else f"{where}: expected {value_text(want)}, got {value_text(got)}"

    def batch_of(want: object, got: object) -> int | None:
        """Of the first input whose leading size is the batch."""
        if (
            isinstance(want, _Tensor)
            and want.shape
            and want.shape[0] == (1, 0)
            and isinstance(got, torch.Tensor)
            and got.dim() > 0
        ):
            return got.shape[0]
        pairs = []
        if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
            pairs = zip(want, got)
        elif isinstance(want, dict) and isinstance(got, dict):
            pairs = ((item, got.get(key)) for key, item in want.items())
        elif isinstance(want, _Object):
            pairs = ((item, getattr(got, name, None)) for name, item in want.fields.items())
        return next(filter(None, (batch_of(a, b) for a, b in pairs)), None)

    def arguments_differ(what: str, of: object, want: object, got: dict, batch: int | None) -> str | None:
        wanted = named(of, want).items()
        found = (differs(f"{what} {name}", item, got.get(name), batch) for name, item in wanted)
        return next(filter(None, found), None)

    def module_differs(self: object) -> str | None:
        if not is_module:
            return None
        held = {
            **dict(self.named_parameters(remove_duplicate=False)),
            **dict(self.named_buffers(remove_duplicate=False)),
        }
        for name, want in (self._guard_state if verified["state"] is None else verified["state"]).items():
            if name not in held:
                expected = tensor_text(want.dtype, want.shape, want.strides, want.device)
                return f"parameter or buffer {name}: expected {expected}, got none"
            if why := tensor_differs(f"parameter or buffer {name}", want, held[name], None):
                return why
        if verified["modes"]:
            for name, module in self.named_modules():
                want = self._guard_modes.get(name, self._guard_modes[""])
                if module.training != want:
                    which = f"module {name}" if name else "the module"
                    built = f"expected training={want}, as it was built"
                    return f"{which}: {built}, got training={module.training}"
        return None

    def needs_gradient(self: object, given: dict) -> bool:
        tensors = [*flat(list(given.values())), *(module_tensors(self) if is_module else ())]
        return any(t.requires_grad for t in tensors)

    def call_differs(self: object, args: tuple, kwargs: dict) -> str | None:
        try:
            bound = of_forward.bind(self, *args, **kwargs)
        except TypeError as error:  # the original's names are not known to one that takes (*inputs)
            if fallback is None and not any(
                p.kind is p.VAR_POSITIONAL for p in of_forward.parameters.values()
            ):
                raise
            return f"forward's arguments: expected {of_forward}, {error}"
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        if autocasts():
            return "expected a call outside of torch.autocast, which changes dtypes, got one inside"
        if (never := self.__dict__.get("_guard_never")) is not None:
            return never
        batch = None
        if any_batch:
            batch = batch_of(list(named(of_forward, verified["inputs"]).values()), list(given.values()))
            least, largest = verified["batch"]
            if batch is not None and not least <= batch <= largest:
                return f"forward's inputs: expected a batch from {least} to {largest}, got {batch}"
        if why := arguments_differ("argument", of_forward, verified["inputs"], given, batch):
            return why
        if why := module_differs(self):
            return why
        if grad_enabled() and needs_gradient(self, given):
            return (
                "expected a call without gradients (torch.no_grad(), torch.inference_mode() or "
                "requires_grad_(False)), got one where an input or a parameter requires a gradient"
            )
        return None

    # -- at speed: whether a call looks as one that was checked in full --------------------------------------

    def flat(tree: object, found: list | None = None) -> list:
        """The tensors of nested inputs, in order."""
        found = [] if found is None else found
        if isinstance(tree, torch.Tensor):
            found.append(tree)
        elif isinstance(tree, (list, tuple)):
            for item in tree:
                flat(item, found)
        elif isinstance(tree, dict):
            for item in tree.values():
                flat(item, found)
        elif hasattr(tree, "__dict__") and not isinstance(tree, (type, torch.nn.Module)):
            flat(vars(tree), found)
        return found

    def module_tensors(self: torch.nn.Module) -> list:
        return [
            t
            for m in self.modules()
            for d in (m._parameters, m._buffers)
            for t in d.values()
            if t is not None
        ]

    def key(tensors: list | tuple) -> list:
        return [
            (t.dtype, t.shape, t.stride(), t.device, t.requires_grad, t.is_neg(), t.is_conj())
            for t in tensors
        ]

    def remember(self: object, args: tuple) -> None:
        """Leaves in self what makes the next check fast, if all arguments are tensors, numbers and texts."""
        simple = (torch.Tensor, int, float, str, type(None))
        state = module_tensors(self) if is_module else []
        tensors = [*(a for a in args if isinstance(a, torch.Tensor)), *state]
        if not all(isinstance(a, simple) for a in args) or not all(
            type(t) in (torch.Tensor, torch.nn.Parameter) for t in tensors
        ):
            return
        modules = list(self.modules()) if is_module else []
        others = [(i, type(a), a) for i, a in enumerate(args) if not isinstance(a, torch.Tensor)]
        holders = [d for m in modules for d in (m._parameters, m._buffers) if d]
        names = [name for d in holders for name in d]  # in this order: one may be taken out and put in again
        nests = [m._modules for m in modules if m._modules]
        inside = [m for d in nests for m in d.values()]
        modes = [m.__dict__ for m in modules] if verified["modes"] else []
        if fast is not None and tensors:
            sizes, strides = [list(t.shape) for t in tensors], [list(t.stride()) for t in tensors]
            check = fast(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
        else:
            wanted = key(tensors)

            def check(*now: torch.Tensor) -> bool:
                return key(now) == wanted

        seen = self.__dict__["_guard_seen"]
        if not any_batch or len(seen.batches) > 64:
            seen = _Seen()
        known = (
            (
                len(args),
                len(tensors),
                check,
                others,
                holders,
                names,
                nests,
                inside,
                modes,
                [d["training"] for d in modes],
            ),
            any(t.requires_grad for t in tensors),
            torch.cuda.current_device() if several_gpus else None,
            # Direct launches, and how often a call was recorded. A zero looks the same as a negative zero.
            [None, math.inf if any(kind is float and value == 0 for _, kind, value in others) else 0],
        )
        seen.known = seen.batches[leading(args)] = known
        self.__dict__["_guard_seen"] = seen

    def leading(args: tuple) -> int | None:
        return (
            next((a.shape[0] for a in args if isinstance(a, torch.Tensor) and a.dim() > 0), None)
            if any_batch
            else None
        )

    def match_known(known: tuple, args: tuple) -> list | None:
        """All tensors of the call and the module, or None."""
        (given, count, check, others, holders, names, nests, inside, modes, training), gradient, device, _ = (
            known
        )
        if len(args) != given or (gradient and grad_enabled()) or autocasts():
            return None
        if others:
            for i, kind, value in others:
                if type(args[i]) is not kind or args[i] != value:
                    return None
            args = [a for a in args if isinstance(a, torch.Tensor)]
        tensors = [*args, *[t for d in holders for t in d.values() if t is not None]]
        if len(tensors) != count or [name for d in holders for name in d] != names or not check(*tensors):
            return None
        if (modes and [d["training"] for d in modes] != training) or (
            nests and [m for d in nests for m in d.values()] != inside
        ):
            return None
        return tensors if device is None or torch.cuda.current_device() == device else None

    def launched(self: object, args: tuple, known: tuple, tensors: list) -> object:
        """The result of a call that looks the same as an earlier one; directly if that was recorded."""
        launches = known[3][0]
        if launches is not None:
            made = launches(*tensors)
            return own_forward(self, *args) if made is direct else made
        return (
            own_forward(self, *args)
            if direct is None
            else direct(lambda: own_forward(self, *args), tensors, known[3])
        )

    # -- around the class ------------------------------------------------------------------------------------

    def __init__(self: object, *args: object, **kwargs: object) -> None:
        own_init(self, *args, **kwargs)
        bound = of_init.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        why = arguments_differ("constructor's argument", of_init, verified["constructor"], given, None)
        if why and fallback is None:
            raise NotVerified(f"{why}. {advice}.")
        held = {"_guard_never": why, "_guard_seen": _Seen()}
        if is_module:
            state = [
                *self.named_parameters(remove_duplicate=False),
                *self.named_buffers(remove_duplicate=False),
            ]
            if verified["state"] is None:
                held["_guard_state"] = {
                    name: _Tensor(str(t.dtype).removeprefix("torch."), tuple(t.shape), t.stride())
                    for name, t in state
                }
            held["_guard_modes"] = {name: module.training for name, module in self.named_modules()}
        if fallback is not None:
            held["_guard_init"] = (args, kwargs)
        self.__dict__.update(held)

    def forward(self: object, *args: object, **kwargs: object) -> object:
        seen = self.__dict__["_guard_seen"]
        known = seen.known
        try:
            if known is not None and not kwargs:
                if (tensors := match_known(known, args)) is not None:
                    return launched(self, args, known, tensors)
                if (
                    any_batch
                    and (known := seen.batches.get(leading(args))) is not None
                    and (tensors := match_known(known, args)) is not None
                ):
                    seen.known = known
                    return launched(self, args, known, tensors)
            why = call_differs(self, args, kwargs)
            if why is None:
                if not kwargs:
                    remember(self, args)
                return own_forward(self, *args, **kwargs)
        except Exception as error:
            if not recovers:
                raise
            why = f"the kernels raised {type(error).__name__}: {error}"
            warnings.warn(f"{cls.__name__}: the original forward runs: {why}", stacklevel=3)
            if not isinstance(error, getattr(torch, "OutOfMemoryError", ())):  # there may be memory later
                self.__dict__["_guard_never"], self.__dict__["_guard_seen"] = why, _Seen()
        if fallback is None:
            raise NotVerified(f"{why}. {advice}.")
        return in_pytorch(self, args, kwargs)

    def in_pytorch(self: object, args: tuple, kwargs: dict) -> object:
        """The original forward, on this module's own parameters and buffers."""
        reference = references.get(self)
        if reference is None:
            with torch.random.fork_rng():
                given, named = self._guard_init
                reference = references[self] = fallback()(*given, **named)
        if not is_module:
            return reference(*args, **kwargs)
        own = dict(self.named_modules(remove_duplicate=False))
        tied = []
        for name, module in reference.named_modules(remove_duplicate=False):
            module.training = own[name].training if name in own else self.training
            for mine, its in (
                (own[name]._parameters, module._parameters),
                (own[name]._buffers, module._buffers),
            ):
                its.update({key: mine[key] for key in its if key in mine})
            tied.append((own[name]._buffers, module._buffers))
        try:
            return reference(*args, **kwargs)
        finally:
            for mine, its in tied:
                mine.update({key: its[key] for key in mine if key in its})

    __init__.__wrapped__, forward.__wrapped__ = own_init, own_forward  # for inspect.signature
    __init__.__doc__, forward.__doc__ = own_init.__doc__, own_forward.__doc__
    cls.__init__ = __init__
    setattr(cls, method, forward)
    return cls
