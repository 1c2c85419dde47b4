"""`nereid.optimize`: a live module's verified kernels, as a module that takes the original's place."""

import dataclasses
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from . import _commands, _export, _program, _structure
from ._exceptions import InputError, NereidError
from ._verdict import Verdict

_PRECISIONS = {"ieee": (False, False), "tf32": (True, True)}
_SIMPLE = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device)
_LONGEST = 20000  # attributes of a module's configuration that are compared before a call


def optimize(
    module: torch.nn.Module,
    example_inputs: Any,
    *,
    budget: str = "60s",
    policy: str = "mostly",
    precision: str = "default",
    report: str | Path | None = None,
    dynamic: str | None = None,
    specialize: int = 1,
    on_error: str = "original",
    example_kwargs: Mapping[str, Any] | None = None,
    **options: Any,
) -> "Optimized":
    """The module with verified Triton kernels where they hold, and the original forward elsewhere.

    module           any live nn.Module: from a notebook, a function, a package
    example_inputs   forward's arguments: a tuple of positional ones, a dictionary of keyword ones, or a single tensor. Kernels are
                     written and verified for their shapes, dtypes, strides and structure; values are drawn anew, integers between the
                     least and the largest of the example
    budget           time for all of it, tracing and writing included: "30s", "5m"
    policy           strict (no PyTorch operator that computes), mostly (90 % of the work in Triton), hybrid (any mixture)
    precision        of float32 products: ieee, tf32 (PyTorch's `high`), or default: what torch's flags say now
    report           where a page that shows graph, times and kernels goes: "fast.html"
    dynamic          "batch": kernels for any leading size, verified at three
    specialize       how many sets of shapes, dtypes, strides and numbers get kernels, at most. A call with
                     another set is exported, and done by the original while its kernels are verified in the
                     background; `fast.nereid_wait()` waits for them
    on_error         where kernels raise in a call: "original", whose forward then runs, with one warning, or
                     "raise"
    example_kwargs   keyword arguments next to a tuple in `example_inputs`
    options          more options of `nereid optimize` by their names: proposers="compiler", first=True, keep_slower=True, seed=7

    Returns a module that shares parameters, buffers and submodules with `module`: its state dict is the
    original's, and `.to()`, `.half()`, `copy.deepcopy`, pickling and `torch.save` work. It takes the same
    arguments and returns the same structure. A call outside of what was verified (another shape, dtype,
    stride, device or structure; a changed training mode, attribute or hook; a gradient; autocast) is done by
    the original's forward, with one warning; `nereid.explain` says why. Globals that forward reads cannot be
    watched.

    fast.nereid_verdict    the Verdict of the kernels; None where the module could not be exported
    fast.nereid_reason     why there are no kernels; None where there are
    fast.save("fast.py")   writes the kernels as a file

    Where nothing was verified the result is the original, wrapped. Raises InputError where an argument is
    wrong or forward itself fails, NereidError where Nereid fails.
    """
    if isinstance(module, Optimized):
        module = module._nereid_original
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"optimize: expected an nn.Module, got a {type(module).__name__}")
    if precision not in ("ieee", "tf32", "default"):
        raise InputError(f"optimize(precision={precision!r}): expected 'ieee', 'tf32' or 'default'")
    if dynamic not in (None, "batch"):
        raise InputError(f"optimize(dynamic={dynamic!r}): expected 'batch' or None")
    if on_error not in ("original", "raise"):
        raise InputError(f"optimize(on_error={on_error!r}): expected 'original' or 'raise'")
    if isinstance(specialize, bool) or not isinstance(specialize, int) or specialize < 1:
        raise InputError(f"optimize(specialize={specialize!r}): expected a number from 1")
    args, kwargs = _examples(example_inputs, example_kwargs)
    call = _Call(module)
    try:
        bound = call.bind(args, kwargs)
    except TypeError as error:
        raise InputError(f"optimize(example_inputs=...): {type(module).__name__}.forward: {error}") from error
    search = {"budget": budget, "policy": policy, "dynamic": dynamic, **options}
    settings = _Settings(specialize, precision, search, on_error)
    plan = _Plan()
    more = {"report": Path(report).absolute()} if report else {}
    plan.make(lambda: _exported(module, call, bound, settings), bound, {**search, **more})
    return Optimized(module, plan, settings)


@dataclasses.dataclass
class _Settings:
    """How further sets of sizes are compiled."""

    specialize: int
    precision: str
    search: dict
    on_error: str = "original"


def _exported(module, call, bound, settings):
    if (why := _unwatched(module)) is not None:
        raise _structure.Unsupported(why)
    batch = settings.search.get("dynamic") == "batch"
    try:
        return _export.export(module, bound, call.run, batch=batch, flags=_flags(settings.precision))
    except _structure.Unsupported:
        raise
    except Exception as error:  # of export's own: the original runs
        raise _structure.Unsupported(_export._short(error)) from error


def explain(fast: "Optimized", *args: Any, **kwargs: Any) -> str | None:
    """Why the call `fast(*args, **kwargs)` would run the original forward; None where it runs the verified
    kernels.

    The sentence names the argument, parameter or mode, what was expected and what was found. Nothing is
    computed."""
    if not isinstance(fast, Optimized):
        raise InputError(f"explain: expected what nereid.optimize returned, got a {type(fast).__name__}")
    return fast._nereid_choice(args, kwargs)[1]


def _examples(given, more):
    more = dict(more or {})
    if isinstance(given, dict):
        return (), {**given, **more}
    if isinstance(given, (tuple, list)) and not hasattr(given, "_fields"):
        return tuple(given), more
    return (given,), more


def _flags(precision):
    """The lines of a task that set float32's precision."""
    matmul, cudnn = _PRECISIONS.get(precision) or (
        torch.backends.cuda.matmul.allow_tf32,
        torch.backends.cudnn.allow_tf32,
    )
    return [
        f"torch.backends.cuda.matmul.allow_tf32 = {bool(matmul)}",
        f"torch.backends.cudnn.allow_tf32 = {bool(cudnn)}",
        "",
    ]


class _Call:
    """A module's forward on arguments that are bound to its parameters' names."""

    def __init__(self, module):
        self.signature = inspect.signature(module.forward)
        self._kinds = {name: parameter.kind for name, parameter in self.signature.parameters.items()}
        simple = all(
            kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            for kind in self._kinds.values()
        )
        self._names = tuple(self._kinds) if simple else None
        self._rest = next(
            (name for name, kind in self._kinds.items() if kind == inspect.Parameter.VAR_POSITIONAL), None
        )

    def bind(self, args, kwargs):
        if not kwargs and self._names is not None and len(args) == len(self._names):
            return dict(zip(self._names, args))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def run(self, module, bound):
        args, kwargs = [], {}
        positional = bool(bound.get(self._rest)) if self._rest else False
        for name, value in bound.items():
            kind = self._kinds[name]
            if kind == inspect.Parameter.VAR_POSITIONAL:
                args += value
            elif kind == inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif kind == inspect.Parameter.POSITIONAL_ONLY or (
                positional and kind == inspect.Parameter.POSITIONAL_OR_KEYWORD
            ):
                args.append(value)
            elif (
                value is not self.signature.parameters[name].default
            ):  # a decorated forward may look at what was given
                kwargs[name] = value
        return module.forward(*args, **kwargs)


# -- what was written and verified -------------------------------------------------------------------------


class _Plan:
    """The kernels' source and what they hold for. Plain data: it is copied and pickled with the module."""

    def __init__(self):
        self.reason = "nothing was verified"
        self.verdict = self.source = self.task = self.exported = None
        self.tensors, self.aliases, self.state_meta = [], (), {}
        self.autocast, self.dtype = None, None
        self.valid = True

    def make(self, export, bound, options):
        """Exports and searches; what cannot be done is the reason."""
        try:
            self.take(export(), bound)
            self.search({key: value for key, value in options.items() if value is not None})
        except _structure.Unsupported as error:
            self.reason = f"not exported: {error}" if self.exported is None else str(error)

    def take(self, exported, bound):
        self.exported, self.task = exported, exported.source
        found = []
        _structure.flatten(bound, found)
        self.tensors = [_meta(tensor) for tensor in found]
        self.aliases = _aliases(found)
        if exported.mutates_inputs and len(set(self.aliases)) != len(found):
            raise _structure.Unsupported("forward writes to an argument that shares memory with another one")
        self.autocast, self.dtype = _export.autocast_of(found), torch.get_default_dtype()

    def search(self, options):
        """Runs `nereid optimize` on the task; leaves source, verdict and reason."""
        keep_slower = options.pop(
            "keep_slower", not torch.cuda.is_available()
        )  # without a clock no kernel is known to be slower
        with tempfile.TemporaryDirectory(prefix="nereid-") as folder:
            task, out = Path(folder) / "model.py", Path(folder) / "fast.py"
            task.write_text(self.task)
            arguments = [
                "optimize",
                task,
                "-o",
                out,
                "--json",
                *_commands.flags({"keep_slower": keep_slower, **options}),
            ]
            try:
                result = _program.parse("optimize", _program.start(*arguments))
            except _program.Answered as answered:
                if answered.code == _program.NO_EXIT and answered.json is not None:
                    result = answered.json
                elif answered.code in (_program.NO_EXIT, _program.INPUT_EXIT) and "model.py" in answered.text:
                    raise _structure.Unsupported(
                        f"the exported program: {answered.text[-500:]}"
                    ) from answered
                elif answered.code == _program.OWN_EXIT and "Error: " in answered.text:  # of every candidate
                    raise _structure.Unsupported(
                        f"a fault of Nereid's own: {answered.text[-500:]}"
                    ) from answered
                else:
                    raise answered.as_error() from answered
            self._judge(result)
            if out.exists() and result.get("output"):
                self.source, self.reason = out.read_text(), None

    def _judge(self, result):
        if not result.get("verdict"):
            tried = [one for one in result.get("tried") or () if one.get("verdict") or one.get("word")]
            closest = dict(tried[-1]) if tried else {}
            declined = "; ".join(f"{one['proposer']}: {one['why']}" for one in result.get("declined") or ())
            evidence = result.get("evidence") or ""
            self.reason = "nothing was verified: " + (_one_line(evidence) or declined or "no proposal")
            kind = closest.get("verdict") or closest.get("word")
            if "aten-compute" in evidence or "aten-share" in evidence:
                self.reason += '; policy="hybrid" allows PyTorch\'s operators where there is no kernel'
            if kind:
                self.verdict = Verdict.from_json(
                    {"verdict": kind, "reason": closest.get("reason") or _one_line(evidence)}
                )
            return
        batches = [one for one in result.get("batches") or () if one.get("verdict") != "Verified"]
        answer = batches[0] if batches else result
        known = {
            key: value
            for key, value in result.items()
            if key in ("times", "seconds", "coverage") and value is not None
        }
        self.verdict = Verdict.from_json(
            {**known, "verdict": answer["verdict"], "reason": answer.get("reason") or ""}
        )
        if result.get("slower_than_eager") and not result.get("output"):
            self.reason = "the verified kernels are slower than eager PyTorch; keep_slower=True uses them"
        elif not result.get("output"):
            self.reason = f"nothing was verified: {self.verdict}"


def _one_line(text):
    return " ".join(str(text).split())[:500]


def _meta(tensor):
    return (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device.type)


def _aliases(tensors):
    """Of each tensor the first one whose memory it shares."""
    if len(tensors) < 2:
        return (0,) * len(tensors)
    first = {}
    return tuple(first.setdefault(tensor.untyped_storage()._cdata, i) for i, tensor in enumerate(tensors))


# -- what is watched of the module -------------------------------------------------------------------------

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_OWN = {
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks", "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks_with_kwargs", "_is_full_backward_hook", "call_super_init", "_compiled_call_impl", *_HOOKS,
}  # fmt: skip


def _unwatched(module):
    """Why the module cannot be exported as it is; None where it can."""
    for name, part in module.named_modules():
        if name and any(getattr(part, hooks) for hooks in _HOOKS):
            return f"module {name} has hooks"
        if type(part).__getattribute__ is not object.__getattribute__ or isinstance(
            part, torch.jit.ScriptModule
        ):
            return f"{f'module {name}' if name else 'the module'} of type {type(part).__name__}: its attributes cannot be watched"
    for kind, values in (("parameter", module.named_parameters()), ("buffer", module.named_buffers())):
        for name, value in values:
            if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                return f"{kind} {name} of type {type(value).__name__}"
    return None


class _Watched:
    """What of a module's Python state forward may have read, and a fast comparison with what it is now."""

    def __init__(self, module):
        self._entries, self._sizes, self._versions = [], [], []
        self._seen = set()
        self._modules = [
            (name, part, part._modules, tuple(part._modules.items())) for name, part in module.named_modules()
        ]
        self.too_large = False
        for name, part in module.named_modules():
            own = vars(part)
            self._sizes.append((name, own, len(own)))
            for key, value in own.items():
                if key not in _OWN:
                    self._watch(own, key, value, f"{name}.{key}" if name else key, 0)

    def _watch(self, holder, key, value, where, depth):
        if len(self._entries) > _LONGEST:
            self.too_large = True
            return
        self._entries.append((holder, key, value, where))
        if isinstance(value, torch.Tensor):
            self._versions.append((value, value._version, where))
            return
        if (
            isinstance(value, _SIMPLE)
            or isinstance(value, (torch.nn.Module, type))
            or callable(value)
            or id(value) in self._seen
            or depth > 4
        ):
            return
        self._seen.add(id(value))
        if isinstance(value, dict):
            for inner, item in value.items():
                self._watch(value, inner, item, f"{where}[{inner!r}]", depth + 1)
            self._sizes.append((where, value, len(value)))
        elif isinstance(value, (list, tuple)):
            for inner, item in enumerate(value):
                self._watch(value, inner, item, f"{where}[{inner}]", depth + 1)
            self._sizes.append((where, value, len(value)))
        elif isinstance(getattr(value, "__dict__", None), dict):
            own = vars(value)
            self._sizes.append((where, own, len(own)))
            for inner, item in own.items():
                self._watch(own, inner, item, f"{where}.{inner}", depth + 1)

    def differs(self):
        """What is another than it was, as a sentence; None where all is the same."""
        for name, part, modules, items in self._modules:
            if (
                part._modules is not modules
                or len(modules) != len(items)
                or any(modules.get(key) is not value for key, value in items)
            ):
                return f"{f'module {name}' if name else 'the module'}: expected the submodules that it had, got others"
            if name and (
                part._forward_hooks
                or part._forward_pre_hooks
                or part._backward_hooks
                or part._backward_pre_hooks
            ):
                return f"module {name}: expected no hooks, got some"
        for where, holder, size in self._sizes:
            if len(holder) != size:
                return f"{where or 'the module'}: expected {size} attributes or items, got {len(holder)}"
        for holder, key, value, where in self._entries:
            try:
                now = holder[key]
            except (KeyError, IndexError):
                return f"attribute {where}: expected {value!r:.80}, got none"
            if now is not value and not (
                isinstance(value, _SIMPLE)
                and type(now) is type(value)
                and (now == value or now != now and value != value)
            ):
                return f"attribute {where}: expected {value!r:.80}, got {now!r:.80}"
        for tensor, version, where in self._versions:
            if tensor._version != version:
                return f"attribute {where}: expected the tensor's values as they were, got changed ones"
        return None


# -- the module --------------------------------------------------------------------------------------------

_SHARED = (
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_hooks", "_backward_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


class Optimized(torch.nn.Module):
    """A module whose forward is verified kernels where they hold, and the original's elsewhere.
    `nereid.optimize` makes it.

    Parameters, buffers, submodules, hooks and attributes are the original's own: the two may be used side by
    side.
    """

    def __init__(self, original: torch.nn.Module, plan: _Plan, settings: _Settings | None = None):
        super().__init__()
        self._nereid_link(original, plan, settings)

    def _nereid_link(self, original, plan, settings=None, more=()):
        own = self.__dict__
        own["_nereid_settings"], own["_nereid_pending"], own["_nereid_refused"] = settings, [], []
        own["_nereid_others"] = [Optimized(original, other) for other in more]  # for other sets of sizes
        own["_nereid_original"], own["_nereid_plan"] = original, plan
        for name in _SHARED:
            own[name] = getattr(original, name)
        own.pop("training", None)
        own["_nereid_call"] = _Call(original)
        own["_nereid_kernels"], own["_nereid_warned"], own["_nereid_watched"] = None, False, None
        own["_nereid_failed"], own["_nereid_ran"] = (
            None,
            False,
        )  # why kernels run no more; whether they have run
        own["_nereid_state"], own["_nereid_asked"] = {}, None
        if plan.exported is not None:
            own["_nereid_asked"] = (plan.exported.inputs, plan.tensors)
        if plan.source is not None:
            own["_nereid_watched"] = _Watched(original)
            names = {
                **dict(original.named_parameters(remove_duplicate=False)),
                **dict(original.named_buffers(remove_duplicate=False)),
            }
            own["_nereid_state"] = {
                name: _meta(names[name]) for name in [*plan.exported.state, *plan.exported.written]
            }

    # -- the call -------------------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the original's forward."""
        if torch.compiler.is_compiling():
            return self._nereid_original.forward(*args, **kwargs)
        chosen, why, tensors = self._nereid_choice(args, kwargs)
        if why is None:
            settings = self._nereid_settings
            return chosen._nereid_run(tensors, settings.on_error if settings else "original")
        why = self._nereid_specialize(args, kwargs) or why
        if not self._nereid_warned:
            self.__dict__["_nereid_warned"] = True
            warnings.warn(f"nereid: the original forward runs: {why}", stacklevel=3)
        return self._nereid_original.forward(*args, **kwargs)

    def _nereid_choice(self, args, kwargs):
        """(whose kernels the call runs, why the original must run or None, the call's tensors)."""
        why, tensors = self._nereid_differs(args, kwargs)
        if why is not None:
            for other in self._nereid_others:
                other_why, found = other._nereid_differs(args, kwargs)
                if other_why is None:
                    return other, None, found
        return self, why, tensors

    def _nereid_specialize(self, args, kwargs):
        """Exports the module for a call that no kernels hold for, and has them verified in the background.
        Why this call is the original's; None where nothing is done."""
        settings = self._nereid_settings
        plan = self._nereid_plan
        if settings is None or plan.source is None or not plan.valid or self._nereid_watched.too_large:
            return None
        if (
            1 + len(self._nereid_others) + len(self._nereid_pending) >= settings.specialize
            or len(self._nereid_refused) > 99
        ):
            return None
        try:
            bound = self._nereid_call.bind(args, kwargs)
            tensors: list[torch.Tensor] = []
            structure = _structure.flatten(bound, tensors)
        except (TypeError, _structure.Unsupported):
            return None
        if (
            self._nereid_watched.differs()
            or self._nereid_state_differs()
            or _surroundings_differ(plan, tensors, self._nereid_original)
            or _no_device(tensors, self._nereid_state)
        ):
            return None
        asked = (structure, [_meta(tensor) for tensor in tensors])
        if asked in [*self._nereid_pending, *self._nereid_refused] or any(
            asked == other._nereid_asked for other in self._nereid_others
        ):
            return None
        other = _Plan()
        try:  # here: export replaces parameters for a moment
            other.take(_exported(self._nereid_original, self._nereid_call, bound, settings), bound)
        except _structure.Unsupported:
            self._nereid_refused.append(asked)
            return None
        self._nereid_pending.append(asked)

        def judge():
            try:
                other.make(lambda: other.exported, bound, settings.search)
            except Exception as error:
                other.reason = f"{type(error).__name__}: {error}"
            finally:
                made = Optimized(self._nereid_original, other)
                made.__dict__["_nereid_asked"] = asked
                self._nereid_others.append(made)
                self._nereid_pending.remove(asked)

        thread = threading.Thread(target=judge, name="nereid", daemon=True)
        self.__dict__["_nereid_threads"] = [*self.__dict__.get("_nereid_threads", ()), thread]
        thread.start()
        return "kernels for this set of sizes are being verified"

    def nereid_wait(self, timeout: float | None = None) -> bool:
        """Waits until the kernels of further sets of sizes are verified, at most `timeout` seconds for each;
        whether they are."""
        threads = self.__dict__.get("_nereid_threads", ())
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)

    def _nereid_differs(self, args, kwargs):
        """(why the original must run or None, the call's tensors)."""
        plan = self._nereid_plan
        if plan.source is None:
            return plan.reason, ()
        if self._nereid_failed is not None:
            return self._nereid_failed, ()
        if not plan.valid or self._nereid_watched.too_large:
            return (
                "its attributes changed before it was copied"
                if not plan.valid
                else "the module has too many attributes to watch",
                (),
            )
        try:
            bound = self._nereid_call.bind(args, kwargs)
            tensors: list[torch.Tensor] = []
            structure = _structure.flatten(bound, tensors)
        except TypeError as error:
            return str(error), ()
        except _structure.Unsupported as error:
            return str(error), ()
        why = (
            _structure.differs("arguments", plan.exported.inputs, structure)
            or self._nereid_tensors_differ(tensors)
            or self._nereid_watched.differs()
            or self._nereid_state_differs()
            or _surroundings_differ(plan, tensors, self._nereid_original)
            or _no_device(tensors, self._nereid_state)
        )
        return why, tensors

    def _nereid_tensors_differ(self, tensors):
        plan = self._nereid_plan
        leading = plan.exported.leading
        batch = (
            next((t.shape[0] for t, is_batch in zip(tensors, leading) if is_batch and t.dim() > 0), None)
            if leading
            else None
        )
        for i, (tensor, want) in enumerate(zip(tensors, plan.tensors)):
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
                return f"tensor {i} of the arguments: expected a plain tensor, got a {type(tensor).__name__}"
            if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
                return f"tensor {i} of the arguments: expected a strided tensor, got one of layout {tensor.layout}, or a lazy conjugate"
            if leading and leading[i]:
                same = (tensor.dtype, tensor.shape[1:], tensor.device.type) == (want[0], want[1][1:], want[3])
                same = same and tensor.shape[0] == batch and tensor.is_contiguous()
            else:
                same = _same_layout(tensor, want)
            if not same:
                return f"tensor {i} of the arguments: expected {_text(want, bool(leading) and leading[i])}, got {_text(_meta(tensor))}"
        if len(tensors) > 1 and _aliases(tensors) != plan.aliases:
            return "arguments: expected tensors that share memory as in the example, got others"
        return None

    def _nereid_state_differs(self):
        original = self._nereid_original
        for name, want in self._nereid_state.items():
            held = _held(original, name)
            if held is None or not _same_layout(held, want):
                return f"parameter or buffer {name}: expected {_text(want)}, got {'none' if held is None else _text(_meta(held))}"
        return None

    def _nereid_run(self, tensors, on_error="original"):
        plan = self._nereid_plan
        exported = plan.exported
        writes = bool(exported.mutates_inputs or exported.written)
        before = None
        if writes and not self._nereid_ran and on_error == "original":  # kernels that raise may have written
            before = [*tensors, *(_held(self._nereid_original, name) for name in exported.written)]
            before = [(tensor, tensor.detach().clone()) for tensor in before]
        try:
            outputs = self._nereid_outputs(tensors)
        except Exception as error:
            kernels = self._nereid_kernels
            if kernels is not None and isinstance(error, kernels.not_verified):
                why = str(error)
            elif on_error == "raise" or (writes and before is None):
                raise
            else:
                why = f"its kernels raised {type(error).__name__}: {_one_line(error)}"
                if not isinstance(error, torch.OutOfMemoryError):  # which another call need not meet
                    self.__dict__["_nereid_failed"] = why
                with torch.no_grad():
                    for tensor, copy in before or ():
                        tensor.copy_(copy)
            if not self._nereid_warned or why == self._nereid_failed:
                self.__dict__["_nereid_warned"] = True
                warnings.warn(f"nereid: the original forward runs: {why}", stacklevel=4)
            return self._nereid_original_answer(tensors)
        if not self._nereid_ran and not writes and os.environ.get("TRITON_INTERPRET") == "1":
            # Triton's interpreter computes some operations wrongly, such as tl.dot of bfloat16.
            random, again = torch.get_rng_state(), self._nereid_original_answer(tensors)
            if torch.equal(random, torch.get_rng_state()) and not _alike(outputs, again):
                self.__dict__["_nereid_failed"] = why = (
                    "Triton's interpreter computes other numbers than the original"
                )
                if on_error == "raise":
                    raise NereidError(why)
                warnings.warn(f"nereid: the original forward runs: {why}", stacklevel=4)
                return again
        self.__dict__["_nereid_ran"] = True
        return outputs

    def _nereid_original_answer(self, tensors):
        bound = _structure.unflatten(self._nereid_plan.exported.inputs, iter(tensors))
        return self._nereid_call.run(self._nereid_original, bound)

    def _nereid_outputs(self, tensors):
        """What the kernels compute, in the original's structure."""
        kernels, exported = self._nereid_kernels, self._nereid_plan.exported
        if kernels is None:
            kernels = self.__dict__["_nereid_kernels"] = _Kernels(self._nereid_plan, self._nereid_original)
        given = [
            t.contiguous() if copied else t
            for t, used, copied in zip(tensors, exported.used, exported.copied)
            if used
        ]
        given += [_held(self._nereid_original, name) for name in exported.written]
        results = kernels.run(given)
        outputs = []
        for kind, which in exported.returned:
            if kind == "computed":
                outputs.append(results[which])
            elif kind == "input":
                outputs.append(tensors[which])
            else:
                outputs.append(_held(self._nereid_original, which))
        return _structure.unflatten(exported.outputs, iter(outputs))

    # -- what it says of itself -----------------------------------------------------------------------------

    @property
    def nereid_verdict(self) -> Verdict | None:
        """Of the kernels, or of what came closest; None where the module could not be exported or nothing was
        proposed."""
        return self._nereid_plan.verdict

    @property
    def nereid_reason(self) -> str | None:
        """Why there are no kernels; None where there are."""
        return self._nereid_plan.reason

    @property
    def nereid_source(self) -> str | None:
        """Text of the file with the kernels; None where there are none."""
        return self._nereid_plan.source

    @property
    def nereid_task(self) -> str | None:
        """Text of the task that was judged: the exported module; None where it could not be exported."""
        return self._nereid_plan.task

    def save(self, path: str | Path) -> None:
        """Writes the kernels as a file with `class ModelNew`, which takes forward's tensors in order. Its
        parameters and buffers have the original's names:
        `ModelNew().load_state_dict(original.state_dict(), strict=False)`. A call that was not verified raises
        NotVerified there. Raises InputError where there are no kernels."""
        if self._nereid_plan.source is None:
            raise InputError(f"save: there are no kernels: {self._nereid_plan.reason}")
        Path(path).write_text(self._nereid_plan.source)

    def __repr__(self):
        state = "kernels" if self._nereid_plan.source is not None else "no kernels"
        return f"Optimized({state})[{self._nereid_original!r}]"

    # -- the original's side --------------------------------------------------------------------------------

    @property
    def training(self):
        original = self.__dict__.get("_nereid_original")
        return True if original is None else original.training

    @training.setter
    def training(self, mode):
        original = self.__dict__.get("_nereid_original")
        if original is not None:
            original.training = mode

    def __getattr__(self, name):
        original = self.__dict__.get("_nereid_original")
        if original is None:
            raise AttributeError(name)
        return getattr(original, name)

    def __setattr__(self, name, value):
        if name.startswith("_nereid_") or "_nereid_original" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            setattr(self._nereid_original, name, value)

    def __delattr__(self, name):
        delattr(self._nereid_original, name)

    def train(self, mode: bool = True):
        self._nereid_original.train(mode)
        return self

    def _apply(self, fn, recurse=True):
        self._nereid_original._apply(fn, recurse)
        return self

    def state_dict(self, *args, **kwargs):
        return self._nereid_original.state_dict(*args, **kwargs)

    def load_state_dict(self, *args, **kwargs):
        return self._nereid_original.load_state_dict(*args, **kwargs)

    def _save_to_state_dict(self, *args):
        self._nereid_original._save_to_state_dict(*args)

    def _load_from_state_dict(self, *args):
        self._nereid_original._load_from_state_dict(*args)

    def __getstate__(self):
        plan = self._nereid_plan
        if plan.source is not None and self._nereid_watched.differs() is not None:
            import copy

            plan = copy.copy(plan)
            plan.valid = False
        more = [other._nereid_plan for other in self._nereid_others if plan.valid]
        return {
            "_nereid_original": self._nereid_original,
            "_nereid_plan": plan,
            "_nereid_settings": self._nereid_settings,
            "_nereid_more": more,
        }

    def __setstate__(self, state):
        torch.nn.Module.__init__(self)
        self._nereid_link(
            state["_nereid_original"],
            state["_nereid_plan"],
            state.get("_nereid_settings"),
            state.get("_nereid_more", ()),
        )

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._nereid_original)})


def _alike(one, other):
    """Whether the tensors of two answers are the same but for rounding."""
    found = [], []
    for answer, tensors in zip((one, other), found):
        _structure.flatten(answer, tensors)
    for a, b in zip(*found):
        if a.shape != b.shape:
            return False
        wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
        a, b = a.detach().to(wide).nan_to_num(), b.detach().to(wide).nan_to_num()
        if (a - b).norm() > 0.05 * (1e-6 + b.norm()):
            return False
    return len(found[0]) == len(found[1])


def _held(module, name):
    """A parameter or buffer by its name; None where there is none."""
    path, _, last = name.rpartition(".")
    part = module.get_submodule(path)
    return part._parameters.get(last) if last in part._parameters else part._buffers.get(last)


def _same_layout(tensor, want):
    if tensor.dtype is not want[0] or tensor.shape != want[1] or tensor.device.type != want[3]:
        return False
    strides = tensor.stride()
    return strides == want[2] or all(size == 1 or a == b for size, a, b in zip(want[1], strides, want[2]))


def _text(meta, any_batch=False):
    shape = str(tuple(meta[1])) if not any_batch else f"(batch, {', '.join(map(str, meta[1][1:]))})"
    return f"a {str(meta[0]).removeprefix('torch.')} tensor of shape {shape} and strides {tuple(meta[2])} on {meta[3]}"


def _surroundings_differ(plan, tensors, module):
    if torch.is_grad_enabled() and (
        any(t.requires_grad for t in tensors) or any(p.requires_grad for p in module.parameters())
    ):
        return "expected a call without gradients (torch.no_grad(), torch.inference_mode() or requires_grad_(False)), got one where an argument or a parameter requires a gradient"
    if _export.autocast_of(tensors) != plan.autocast:
        return f"autocast: expected {dict(plan.autocast) or 'none'}, got {dict(_export.autocast_of(tensors)) or 'none'}"
    if torch.get_default_dtype() != plan.dtype:
        return f"default dtype: expected {plan.dtype}, got {torch.get_default_dtype()}"
    if (
        torch._C._len_torch_dispatch_stack() or torch._C._functorch.maybe_get_level(tensors[0]) > 0
        if tensors
        else False
    ):
        return "expected a plain call, got one under a torch dispatch mode or a function transform"
    if torch.nn.modules.module._has_any_global_hook():
        return "expected no global module hooks, got some"
    return None


def _no_device(tensors, state):
    kinds = {tensor.device.type for tensor in tensors} | {meta[3] for meta in state.values()}
    if kinds == {"cuda"} or (kinds <= {"cuda", "cpu"} and os.environ.get("TRITON_INTERPRET") == "1"):
        return None
    return f"the kernels need a CUDA device, got tensors on {', '.join(sorted(kinds))}"


class _Kernels:
    """The written file, loaded, on the original's parameters and buffers."""

    def __init__(self, plan, original):
        self._file = tempfile.NamedTemporaryFile(
            "w", suffix=".py", prefix="nereid_", delete=False
        )  # triton reads a kernel's source
        try:
            with self._file as file:
                file.write(plan.source)
            name = "_nereid_" + re.sub(r"\W", "_", Path(self._file.name).stem)
            spec = importlib.util.spec_from_file_location(name, self._file.name)
            loaded = importlib.util.module_from_spec(spec)
            sys.modules[name] = loaded
            spec.loader.exec_module(loaded)
        finally:
            os.unlink(self._file.name)
        self.not_verified = getattr(loaded, "NotVerified", NereidError)
        with torch.device("meta"), torch.random.fork_rng(devices=[]):
            self._module = loaded.ModelNew()
        self._module.requires_grad_(False)
        for path, part in list(self._module.named_modules()):
            if path == _export._CONSTANTS:
                device = next((t.device for t in [*original.parameters(), *original.buffers()]), None)
                for i, tensor in enumerate(plan.exported.constants):
                    if f"c{i}" in part._buffers:
                        part._buffers[f"c{i}"] = (
                            tensor.detach().to(device) if device is not None else tensor.detach()
                        )
        self._renamed = []  # (dictionary of the kernels' module, name there, the original's dictionary, name there)
        parts = {}
        for theirs, ours in plan.exported.state_names.items():
            (path, _, last), (own_path, _, own_last) = theirs.rpartition("."), ours.rpartition(".")
            mine, part = original.get_submodule(path), self._module.get_submodule(own_path)
            if last == own_last:
                parts[own_path] = (part, mine)
            for kind in ("_parameters", "_buffers"):
                if last != own_last and last in getattr(mine, kind):
                    self._renamed.append((getattr(part, kind), own_last, getattr(mine, kind), last))
        for part, mine in parts.values():
            if not any(holder in (part._parameters, part._buffers) for holder, *_ in self._renamed):
                part.__dict__["_parameters"], part.__dict__["_buffers"] = mine._parameters, mine._buffers
            else:
                for kind in ("_parameters", "_buffers"):
                    held = getattr(part, kind)
                    self._renamed += [
                        (held, name, getattr(mine, kind), name)
                        for name in held
                        if name in getattr(mine, kind)
                    ]
        self._single = plan.exported.computed == 1

    def run(self, tensors):
        for holder, name, mine, theirs in self._renamed:
            holder[name] = mine[theirs]
        results = self._module(*tensors)
        return (results,) if self._single else results
