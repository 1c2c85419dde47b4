"""The module that `nereid.optimize` returns."""

import contextlib
import copy
import inspect
import os
import threading
import types
import warnings
import weakref
from pathlib import Path
from typing import Any

import torch

from .. import _structure
from .._exceptions import InputError, NereidError
from .._verdict import Verdict
from . import operators
from .call import Call
from .forwarded import LEFT, SHARED, SPECIAL, special_method
from .kernels import Kernels, answer_of
from .native import Checked
from .plan import Plan, Settings, exported_module, one_line
from .prepared import AGAIN
from .stand_in import StandIn
from .tensors import (
    alike,
    held_by,
    meta_of,
    no_device,
    same_layout,
    special,
    state_of,
    context_differs,
    tensors_differ,
    text_of,
    ties_of,
    transformed,
)
from .watched import Watched

_interpreter = threading.RLock()  # Triton's interpreter replaces triton.language while a kernel runs
_classes = weakref.WeakKeyDictionary()


def _class_of(theirs):
    """The class of what optimizes a module of class `theirs`: with its special methods, and with forward's
    signature, which torch.export and Hugging Face's Trainer read."""
    if theirs not in _classes:
        names = [n for n in SPECIAL if getattr(theirs, n, None) is not getattr(object, n, None)]
        plain = Optimized.forward
        forward = types.FunctionType(plain.__code__, plain.__globals__, "forward", plain.__defaults__)
        forward.__doc__, forward.__signature__ = theirs.forward.__doc__, inspect.signature(theirs.forward)
        forward.__wrapped__ = theirs.forward  # whose arguments torch.fx takes
        held = {"forward": forward, "__module__": __name__, "__doc__": Optimized.__doc__}
        _classes[theirs] = type("Optimized", (Optimized,), {**held, **{n: special_method(n) for n in names}})
    return _classes[theirs]


def _blank():
    return Optimized.__new__(Optimized)


class Optimized(StandIn):
    """A module whose forward is verified kernels where they hold, and the original's elsewhere.
    `nereid.optimize` makes it.

    Parameters, buffers, submodules, hooks and attributes are the original's own: the two may be used side by
    side. `isinstance` takes it for a module of the original's class, too.
    """

    def __init__(self, original: torch.nn.Module, plan: Plan, settings: Settings | None = None):
        super().__init__()
        self._nereid_link(original, plan, settings)

    def _nereid_link(self, original, plan, settings=None, more=()):
        own = self.__dict__
        own["_nereid_settings"], own["_nereid_pending"], own["_nereid_refused"] = settings, [], []
        own["_nereid_others"] = [Optimized(original, other) for other in more]  # for other sets of sizes
        own["_nereid_original"], own["_nereid_plan"] = original, plan
        object.__dict__["__class__"].__set__(self, _class_of(type(original)))
        for name in SHARED:
            own[name] = getattr(original, name)
        for name in LEFT:
            own.pop(name, None)
        own["_nereid_call"] = Call(original)
        own["_nereid_kernels"], own["_nereid_warned"], own["_nereid_watched"] = None, False, None
        own["_nereid_native"], own["_nereid_direct"] = Checked(), None
        own["_nereid_failed"], own["_nereid_ran"] = None, False  # why kernels run no more; whether they ran
        own["_nereid_state"], own["_nereid_asked"], own["_nereid_ties"] = {}, None, []
        if plan.exported is not None:
            own["_nereid_asked"] = (plan.exported.inputs, plan.tensors)
        if plan.source is not None:
            own["_nereid_watched"] = Watched(original)
            names = dict(original.named_parameters(remove_duplicate=False))
            names.update(original.named_buffers(remove_duplicate=False))
            own["_nereid_state"] = {
                name: meta_of(names[name]) for name in [*plan.exported.state, *plan.exported.written]
            }
            own["_nereid_ties"] = ties_of(names)
            # The guard's fast way there.
            paths = {name: name.rpartition(".") for name in own["_nereid_state"]}
            own["_nereid_places"] = [
                (name, want, original.get_submodule(paths[name][0]), paths[name][2])
                for name, want in own["_nereid_state"].items()
            ]

    # -- the call -------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As nn.Module's, which runs where there are hooks, it is compiled or the native check does not
        pass."""
        own = self.__dict__
        if (
            not torch.compiler.is_compiling()
            and (run := own["_nereid_native"].run) is not None
            and not own["_forward_hooks"]
            and not own["_forward_pre_hooks"]
            and not own["_backward_hooks"]
            and not own["_backward_pre_hooks"]
            and "_compiled_call_impl" not in own
        ):
            try:
                if (answer := run(args, kwargs)) is not AGAIN:
                    return answer
            except Exception:  # noqa: BLE001 (the kernels raise it again)
                return self._nereid_checked(args, kwargs)
        return super().__call__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """As the original's forward."""
        if torch.compiler.is_compiling():
            if not torch.compiler.is_dynamo_compiling() and operators.holds(self):
                return operators.answer(self, args, kwargs)
            return self._nereid_original.forward(*args, **kwargs)
        if (run := self._nereid_native.run) is not None:
            try:
                if (answer := run(args, kwargs)) is not AGAIN:
                    return answer
            except Exception:  # noqa: BLE001, S110 (the kernels raise it again below)
                pass
        return self._nereid_checked(args, kwargs)

    def _nereid_checked(self, args, kwargs):
        """A call after the check in Python."""
        chosen, why, tensors = self._nereid_choice(args, kwargs)
        if why is None:
            settings = self._nereid_settings
            return chosen._nereid_run(tensors, settings.on_error if settings else "original")
        if any(isinstance(value, torch.fx.Proxy) for value in (*args, *kwargs.values())):
            return self._nereid_original.forward(*args, **kwargs)  # traced through, as by torch.compile
        why = self._nereid_specialize(args, kwargs) or why
        if not self._nereid_warned:
            self.__dict__["_nereid_warned"] = True
            warnings.warn(f"nereid: the original forward runs: {why}", stacklevel=4)
        return self._nereid_original.forward(*args, **kwargs)

    def _nereid_choice(self, args, kwargs):
        """(whose kernels the call runs, why the original must run or None, the call's tensors)."""
        held = (self, *self._nereid_others)
        for one in held:
            matched = one._nereid_native.matched
            if matched is not None and (tensors := matched(args, kwargs)) is not None:
                return one, None, tensors
        answers = [(self, *self._nereid_differs(args, kwargs))]
        if answers[0][1] is not None:
            answers += [(one, *one._nereid_differs(args, kwargs)) for one in self._nereid_others]
        chosen, why, tensors = next((answer for answer in answers if answer[1] is None), answers[0])
        if why is None:
            chosen._nereid_native.missed(chosen, args, kwargs, tensors)
        return chosen, why, tensors

    def _nereid_specialize(self, args, kwargs):
        """Exports the module for a call that no kernels hold for, and has them verified in the background.
        Why this call is the original's; None where nothing is done."""
        settings = self._nereid_settings
        plan = self._nereid_plan
        if settings is None or plan.source is None or not plan.valid or self._nereid_watched.unknown:
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
            or self._nereid_state_differs(tensors)
            or context_differs(plan, tensors, self._nereid_watched.parts)
            or no_device(tensors, self._nereid_state)
        ):
            return None
        asked = (structure, [meta_of(tensor) for tensor in tensors])
        if asked in [*self._nereid_pending, *self._nereid_refused] or any(
            asked == other._nereid_asked for other in self._nereid_others
        ):
            return None
        other = Plan()
        try:  # here: export replaces parameters for a moment
            other.take(exported_module(self._nereid_original, self._nereid_call, bound, settings), bound)
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
        self.__dict__.setdefault("_nereid_threads", []).append(thread)
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
        if (why := transformed()) is not None:
            return why, ()
        if self._nereid_failed is not None:
            return self._nereid_failed, ()
        if not plan.valid:
            return "its attributes, or globals that it reads, changed before it was copied", ()
        if (why := self._nereid_watched.unknown) is not None:
            return why, ()
        try:
            bound = self._nereid_call.bind(args, kwargs)
            tensors: list[torch.Tensor] = []
            structure = _structure.flatten(bound, tensors)
        except (TypeError, _structure.Unsupported) as error:
            return str(error), ()
        why = (
            _structure.differs("arguments", plan.exported.inputs, structure)
            or tensors_differ(plan, tensors)
            or self._nereid_watched.differs()
            or self._nereid_state_differs(tensors)
            or context_differs(plan, tensors, self._nereid_watched.parts)
            or no_device(tensors, self._nereid_state)
        )
        return why, tensors

    def _nereid_state_differs(self, tensors):
        original = self._nereid_original
        for name, want, part, last in self._nereid_places:
            held = held_by(part, last)
            if held is not None and (why := special(f"parameter or buffer {name}", held)) is not None:
                return why
            if held is None or not same_layout(held, want):
                return (
                    f"parameter or buffer {name}: expected {text_of(want)}, got "
                    f"{'none' if held is None else text_of(meta_of(held))}"
                )
        exported = self._nereid_plan.exported
        if exported.written or exported.mutates_inputs:  # what is written must not be read as something else
            given = {tensor.untyped_storage()._cdata for tensor in tensors}
            for name, _, part, last in self._nereid_places:
                if held_by(part, last).untyped_storage()._cdata in given:
                    return f"arguments: expected memory of their own, got some that {name} holds"
        for name, other in self._nereid_ties:
            if state_of(original, name) is not state_of(original, other):
                return f"parameter or buffer {name}: expected {other}, which it was tied to, got another one"
        return None

    def _nereid_run(self, tensors, on_error="original"):
        with contextlib.suppress(Exception):  # which the kernels raise again below
            if (answer := self._nereid_at_once(tensors)) is not AGAIN:
                return answer
        plan = self._nereid_plan
        exported = plan.exported
        writes = bool(exported.mutates_inputs or exported.written)
        before = None
        if writes and not self._nereid_ran and on_error == "original":  # kernels that raise may have written
            before = [*tensors, *(state_of(self._nereid_original, name) for name in exported.written)]
            before = [(tensor, tensor.detach().clone()) for tensor in before]
        try:
            with _interpreter if os.environ.get("TRITON_INTERPRET") == "1" else contextlib.nullcontext():
                outputs = self._nereid_outputs(tensors)
        except Exception as error:
            kernels = self._nereid_kernels
            if kernels is not None and isinstance(error, kernels.not_verified):
                why = str(error)
            elif on_error == "raise" or (writes and before is None):
                raise
            else:
                why = f"its kernels raised {type(error).__name__}: {one_line(error)}"
                if not isinstance(error, torch.OutOfMemoryError):  # another call need not meet it
                    self._nereid_fails(why)
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
            drawn = not torch.equal(random, torch.get_rng_state())
            torch.set_rng_state(random)  # as after one call
            if not drawn and not alike(outputs, again):
                why = "Triton's interpreter computes other numbers than the original"
                self._nereid_fails(why)
                if on_error == "raise":
                    raise NereidError(why)
                warnings.warn(f"nereid: the original forward runs: {why}", stacklevel=4)
                return again
        self.__dict__["_nereid_ran"] = True
        self.__dict__["_nereid_direct"] = self._nereid_kernels.direct(exported)
        return outputs

    def _nereid_at_once(self, tensors):
        """The answer of a call that has been checked, by a plan or by recorded launches; AGAIN without."""
        if self._nereid_native.run is not None:
            answer = self._nereid_native.runner.run_checked(tuple(tensors))
            if answer is not AGAIN:
                return answer
        direct = self._nereid_direct
        return AGAIN if direct is None else direct(tensors, self._nereid_original)

    def _nereid_fails(self, why):
        """The original runs from now on."""
        self.__dict__["_nereid_failed"] = why
        self.__dict__["_nereid_direct"] = None
        self._nereid_native.forget()
        self._nereid_native.take(None)

    def _nereid_original_answer(self, tensors):
        bound = _structure.unflatten(self._nereid_plan.exported.inputs, iter(tensors))
        return self._nereid_call.run(self._nereid_original, bound)

    def _nereid_outputs(self, tensors):
        """What the kernels compute, in the original's structure."""
        kernels, exported = self._nereid_kernels, self._nereid_plan.exported
        if kernels is None:
            kernels = self.__dict__["_nereid_kernels"] = Kernels(self._nereid_plan, self._nereid_original)
        given = [
            t.contiguous() if copied else t
            for t, used, copied in zip(tensors, exported.used, exported.copied)
            if used
        ]
        given += [state_of(self._nereid_original, name) for name in exported.written]
        if self._nereid_ran and self._nereid_native.runner is None and kernels.to_prepare(exported):
            call = given, [i for i, used in enumerate(exported.used) if used]
            results, runner = kernels.prepare(exported, call, tensors, self._nereid_original)
            if runner is not None:
                self._nereid_native.take(runner)
        else:
            results = kernels.run(given)
        return answer_of(exported, results, tensors, self._nereid_original)

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

    # -- pickles ---------------------------------------------------------------------------------------------

    def __reduce_ex__(self, protocol):
        return _blank, (), self.__getstate__()

    def __getstate__(self):
        plan = self._nereid_plan
        if plan.source is not None and self._nereid_watched.differs() is not None:
            plan = copy.copy(plan)
            plan.valid = False
        more = [other._nereid_plan for other in self._nereid_others if plan.valid]
        return {
            "_nereid_original": self._nereid_original,
            "_nereid_plan": plan,
            "_nereid_settings": self._nereid_settings,
            "_nereid_more": more,
            "_nereid_outside": self._nereid_watched.outside if self._nereid_watched is not None else {},
        }

    def __setstate__(self, state):
        torch.nn.Module.__init__(self)
        self._nereid_link(
            state["_nereid_original"],
            state["_nereid_plan"],
            state.get("_nereid_settings"),
            state.get("_nereid_more", ()),
        )
        held = self._nereid_watched.outside if self._nereid_watched is not None else {}
        wanted = state.get("_nereid_outside", {})
        if any(type(held.get(k)) is not type(v) or held[k] != v for k, v in wanted.items()):
            plan = self.__dict__["_nereid_plan"] = copy.copy(self._nereid_plan)
            plan.valid = False  # globals or attributes of classes are others in this process
