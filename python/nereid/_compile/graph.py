"""A graph that Dynamo took from a model: kernels by its sizes, and the fallback."""

import os
import threading
import warnings
import weakref

import torch

from .. import _export, _structure
from .._exceptions import InputError, NereidError
from .._optimize.call import Call
from .._optimize.module import Optimized
from .._optimize.plan import Plan, flags_of
from .._optimize.tensors import aliases_of, meta_of, state_of
from .._optimize.watched import unwatched
from .._verdict import Verdict
from . import cache
from .lifted import Lifted, Number, places_of, placeholders

_DEEPEST = 2  # splits of a part's part
graphs: "weakref.WeakSet[CompiledGraph]" = weakref.WeakSet()
_counter = iter(range(1 << 62))


class _Entry:
    """Kernels for one set of sizes, or the reason why there are none."""

    def __init__(self):
        self.lifted = self.fast = self.reason = self.verdict = self.parts = None
        self.ready = threading.Event()
        self.calls = 0
        self.tried = False  # whether the kernels ran once
        self.refused = False  # because of a wrong option
        self.aliases = ()


class CompiledGraph:
    """One graph of a model, callable as Dynamo calls it. `nereid.compiled_graphs()` lists them."""

    def __init__(self, graph, settings, depth=0, state=()):
        self._graph, self._settings, self._depth = graph, settings, depth
        self._places = places_of(graph, state)
        self._constants = [i for i, place in enumerate(self._places) if place.kind == "constant"]
        self._numbers = [i for i, place in enumerate(self._places) if place.kind == "number"]
        self._tensors = [i for i, place in enumerate(self._places) if place.kind in ("state", "tensor")]
        self._entries: dict[tuple, _Entry] = {}
        self._last: _Entry | None = None
        self._lock = threading.RLock()
        self._fallback, self._warned = None, False
        self.number = next(_counter)
        self.fallback_calls = 0
        """Calls that the fallback did."""
        graphs.add(self)

    # -- what it says of itself -----------------------------------------------------------------------------

    @property
    def verdicts(self) -> list[Verdict]:
        """Of each set of sizes that was judged."""
        found = [entry.verdict for entry in self._entries.values() if entry.verdict is not None]
        return found + [verdict for part in self.parts for verdict in part.verdicts]

    @property
    def reason(self) -> str | None:
        """Why there are no kernels: None where a set of sizes has some, or a part of the graph."""
        entries = list(self._entries.values())
        if any(entry.fast is not None for entry in entries) or any(
            part.reason is None for part in self.parts
        ):
            return None
        if not entries:
            return "not called yet"
        return entries[-1].reason or "its kernels are being verified"

    @property
    def parts(self) -> "list[CompiledGraph]":
        """The parts of a graph that was split."""
        return [part for entry in self._entries.values() for part in entry.parts or ()]

    @property
    def calls(self) -> int:
        """Calls that verified kernels did, of the graph or of its parts."""
        return sum(entry.calls for entry in self._entries.values()) + sum(part.calls for part in self.parts)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for verification in the background, at most `timeout` seconds; whether all of it is done."""
        done = all([entry.ready.wait(timeout) for entry in list(self._entries.values())])
        return done and all([part.wait(timeout) for part in self.parts])

    def __repr__(self):
        return (
            f"<CompiledGraph {self.number}: {self.calls} calls of kernels, {self.fallback_calls} of the"
            f" fallback; {self.reason or 'verified'}>"
        )

    # -- the call -------------------------------------------------------------------------------------------

    def __call__(self, *args):
        why = _not_ours(args, self._tensors)
        if why is not None:
            return self._call_fallback(args, why)
        try:
            entry = self._entry(args)
        except InputError:
            raise
        except Exception as error:  # nothing has run yet, and the model must go on
            return self._call_fallback(args, f"a fault of Nereid: {type(error).__name__}: {error}"[:400])
        if isinstance(entry, str):
            return self._call_fallback(args, entry)
        if not entry.ready.is_set():
            return self._call_fallback(args, None)
        if entry.parts is not None:
            return entry.run(*args)
        if entry.fast is None:
            return self._call_fallback(args, entry.reason)
        with self._lock:
            tensors = entry.lifted.hold(args)
            why, found = entry.fast._nereid_differs(tensors, {})
            if why is None:
                try:
                    result = self._run(entry, args, found)
                except _Failed as failed:
                    entry.fast, entry.reason = None, str(failed)
                    why = entry.reason
                else:
                    entry.calls += 1
                    return result
        return self._call_fallback(args, why)

    def _run(self, entry, args, tensors):
        """The kernels' outputs. A first run that fails leaves no trace, and raises _Failed."""
        exported = entry.fast._nereid_plan.exported
        if entry.tried:
            return entry.fast._nereid_run(tensors)
        written = [state_of(entry.lifted, name) for name in exported.written]
        if exported.mutates_inputs:
            written += tensors
        kept = [tensor.clone() for tensor in written]
        try:
            result = entry.fast._nereid_run(tensors)
            if any(tensor.is_cuda for tensor in tensors):
                torch.cuda.synchronize()
            if (found := _shared([args[i] for i in self._tensors], result)) != entry.aliases:
                raise _Failed(f"outputs share memory as {found}, in the graph as {entry.aliases}")
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            for tensor, value in zip(written, kept):
                tensor.copy_(value)
            raise _Failed(f"the kernels do not run here: {type(error).__name__}: {error}"[:400]) from error
        entry.tried = True
        return result

    def _call_fallback_quietly(self, *args):
        return self._call_fallback(args, None)

    def _call_fallback(self, args, why):
        self.fallback_calls += 1
        if why is not None and not self._warned:
            self._warned = True
            name = "Inductor" if self._settings.fallback == "inductor" else "eager PyTorch"
            warnings.warn(f"nereid: {name} runs graph {self.number}: {why}", stacklevel=4)
        if self._fallback is None:
            self._fallback = self._make_fallback()
        return self._fallback(*args)

    def _make_fallback(self):
        if self._settings.fallback == "eager":
            return self._graph.forward
        dynamic = True if self._constants else None
        mode = self._settings.mode
        compiled = torch.compile(
            self._graph, backend="inductor", dynamic=dynamic, **({"mode": mode} if mode else {})
        )
        done = False

        def run(*args):
            nonlocal done
            if done:
                return compiled(*args)
            try:
                result = compiled(*args)
                done = True
                return result
            except (
                torch._dynamo.exc.BackendCompilerFailed,
                torch._dynamo.exc.InternalTorchDynamoError,
            ) as error:
                warnings.warn(
                    f"nereid: Inductor fails on graph {self.number}, eager PyTorch runs: {error}"[:400]
                )
                self._fallback = self._graph.forward
                return self._fallback(*args)

        return run

    # -- compilation ----------------------------------------------------------------------------------------

    def _entry(self, args):
        """The entry of these arguments' sizes, compiled where they are new; a sentence where they get
        none."""
        try:
            key = tuple((type(args[i]), args[i]) for i in self._constants)
            key += tuple(repr(args[i].item()) for i in self._numbers)
            key += tuple(meta_of(args[i]) for i in self._tensors)
            entry = self._entries.get(key)
        except TypeError:
            return "a number or object among its arguments cannot be compared"
        if entry is not None:
            return entry
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                return entry
            if len(self._entries) >= self._settings.specialize:
                return (
                    f"another set of sizes than the {len(self._entries)} that have kernels (the option"
                    " specialize)"
                )
            entry = self._entries[key] = _Entry()
        self._compile(entry, args)
        return entry

    def _compile(self, entry, args):
        """Exports the graph here and has it judged, here or in the background."""
        plan = Plan()
        args = tuple(
            Number(arg.item()) if place.kind == "number" else arg for arg, place in zip(args, self._places)
        )
        if (why := _no_constants([args[i] for i in self._constants])) is not None:
            entry.reason = why
            entry.ready.set()
            return
        try:
            entry.lifted = Lifted(self._graph, self._places, args)
            tensors = tuple(arg for arg, place in zip(args, self._places) if place.kind == "tensor")
            call = Call(entry.lifted)
            bound = call.bind(tensors, {})
            if (why := unwatched(entry.lifted)) is not None:
                raise _structure.Unsupported(why)
            with torch.inference_mode(False):
                exported = _export.export(
                    entry.lifted, bound, call.run, flags=flags_of(self._settings.precision)
                )
            if (exported.mutates_inputs or exported.written) and _shares_memory(args):
                raise _structure.Unsupported("it writes to an argument that shares memory with another one")
            entry.aliases = _expected_aliases(self._graph, args)
            plan.take(exported, bound)
        except _structure.Unsupported as error:
            plan.reason = f"not exported: {error}"
        except Exception as error:  # an export that fails must not break the model
            plan.reason = f"not exported: {type(error).__name__}: {error}"[:400]

        def judge():
            try:
                if plan.exported is not None:
                    self._judge(plan)
            except _structure.Unsupported as error:
                plan.reason = str(error)
            except NereidError as error:
                plan.reason = f"a fault of Nereid: {error}"
            except Exception as error:
                plan.reason = f"a fault of Nereid: {type(error).__name__}: {error}"[:400]
                if isinstance(error, InputError):
                    entry.refused = True
                    failed.append(error)
            try:
                self._finish(entry, plan, args)
            finally:
                entry.ready.set()

        failed: list[Exception] = []
        if self._settings.background:
            threading.Thread(target=judge, name="nereid", daemon=True).start()
            return
        judge()
        if failed:  # a wrong option: at the first call, and as what it is
            raise failed[0]

    def _judge(self, plan):
        options = {
            key: value
            for key, value in self._settings.search.items()
            if value is not None and value is not False
        }
        key = cache.content_key(plan.task, options)
        if self._settings.cache and (found := cache.read(key)) is not None:
            plan.source, plan.verdict, plan.reason = found
            return
        plan.search(dict(options))
        if self._settings.cache and plan.source is not None:
            cache.write(key, plan)

    def _finish(self, entry, plan, args):
        entry.verdict = plan.verdict
        if plan.source is not None:
            entry.fast = Optimized(entry.lifted, plan)
            return
        entry.reason = plan.reason
        verified = plan.verdict is not None and plan.verdict.verified  # and slower than eager
        if self._depth < _DEEPEST and not entry.refused and not verified:
            self._split(entry, args)

    def _split(self, entry, args):
        """Splits the graph at what cannot be exported; the parts between are graphs of their own."""
        from .. import _partition

        try:
            with torch.inference_mode(False):
                split = _partition.split(self._graph, args)
        except Exception as error:
            entry.reason += f" (and the graph cannot be split: {type(error).__name__}: {error})"[:300]
            return
        if split is None:
            return
        whole, ours, rest = split
        state = {
            node.name for node, place in zip(placeholders(self._graph), self._places) if place.kind == "state"
        }
        parts = []
        for name in [*ours, *rest]:
            part = CompiledGraph(getattr(whole, name), self._settings, self._depth + 1, state)
            delattr(whole, name)
            setattr(whole, name, _Called(part if name in ours else part._call_fallback_quietly))
            if name in ours:
                parts.append(part)
        entry.run, entry.parts = whole, parts


class _Called(torch.nn.Module):
    """A part of a graph as a submodule of the whole."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, *args):
        return self.call(*args)


class _Failed(Exception):
    """Kernels that were verified and do not run on this machine."""


def _not_ours(args, tensors):
    """Why a call is the fallback's before anything is looked up. `tensors`: indices of the arguments that
    kernels are given; numbers of a graph for any sizes are tensors on the CPU, too."""
    if torch.is_grad_enabled() and any(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args):
        return (
            "a gradient is asked for: an argument or a parameter requires one (torch.no_grad() or"
            " requires_grad_(False) use the kernels)"
        )
    kinds = {args[i].device.type for i in tensors}
    if not kinds:
        return "no argument is a tensor"
    if kinds == {"cuda"} or (kinds <= {"cuda", "cpu"} and os.environ.get("TRITON_INTERPRET") == "1"):
        return None
    return f"the kernels need a CUDA device, got tensors on {', '.join(sorted(kinds))}"


def _no_constants(values):
    for value in values:
        if not isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.device)):
            return f"an argument of type {type(value).__name__}"
    return None


def _shares_memory(args):
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    return len(set(aliases_of(tensors))) != len(tensors)


def _shared(args, outputs):
    """Of each output tensor the first argument or output whose memory it shares."""
    given = [arg for arg in args if isinstance(arg, torch.Tensor)]
    made = [leaf for leaf in torch.utils._pytree.tree_leaves(outputs) if isinstance(leaf, torch.Tensor)]
    first: dict[int, int] = {}
    found = [
        first.setdefault(tensor.untyped_storage()._cdata, i) if tensor.numel() else -1
        for i, tensor in enumerate([*given, *made])
    ]
    return tuple(found[len(given) :])


def _expected_aliases(graph, args):
    """`_shared` of the graph itself, on fake tensors. Numbers are not among the arguments."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with torch.inference_mode(False), torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(arg.detach()) if isinstance(arg, torch.Tensor) else arg for arg in args]
        return _shared(fakes, graph(*fakes))
